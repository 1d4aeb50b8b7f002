"use strict";
// The team: who did what, how far people agree, who is asked about what, and files in and out.
window.Hilltop = window.Hilltop || {};

(() => {
  const { client, make, number, percent, plural, saveAs, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const FILES = { answers: "answers.csv", labels: "corrected.zip" };
  const MOST_BYTES = 60e6;

  const headOf = (text, scope) => Object.assign(make("th", "", text), { scope });

  function table(id, heads, rows) {
    const top = make("tr");
    top.append(...heads.map((head) => headOf(head, "col")));
    byId(id).replaceChildren(top, ...rows.map(([first, ...cells]) => {
      const row = make("tr");
      row.append(headOf(first, "row"), ...cells.map((cell) => make("td", "", cell)));
      return row;
    }));
  }

  const measured = (value) => (value === null ? "–" : value.toFixed(2));

  class Team {
    // name(): who is reviewing; assigned(): work was shared anew; taken(): answers came in.
    constructor({ name, assigned, taken, closed, tell }) {
      Object.assign(this, { name, assigned, taken, tell });
      this.dialog = byId("team");
      this.names = [];
      this.dialog.addEventListener("close", closed);
      byId("people").addEventListener("click", () => this.open());
      byId("close-team").addEventListener("click", () => this.dialog.close());
      byId("add-person").addEventListener("submit", (event) => { event.preventDefault(); this.#addPerson(); });
      byId("share-form").addEventListener("submit", (event) => { event.preventDefault(); this.#assign(); });
      byId("share-evenly").addEventListener("click", () => this.#evenly());
      byId("share-nothing").addEventListener("click", () => this.#everybody());
      this.dialog.querySelectorAll("[data-export]").forEach((button) =>
        button.addEventListener("click", () => this.#export(button)));
      byId("take-file").addEventListener("change", (event) => {
        this.take(event.target.files[0]);
        event.target.value = "";
      });
      byId("take-anyway").addEventListener("click", () => this.take(this.file, true));
      byId("leave-file").addEventListener("click", () => byId("other-audit").close());
      if (client.take) this.#listenToDrops();
    }

    async open() {
      byId("team-fault").textContent = "";
      try {
        this.#show(await client.people(this.name()));
        if (!this.dialog.open) this.dialog.showModal();
      } catch (error) {
        this.tell(error.message);
      }
    }

    #show({ people, agreement, plan, may_assign: mayAssign }) {
      const gold = people.some((one) => one.gold);
      const part = (name) => {
        const one = plan.people[name];
        if (!one) return Object.keys(plan.people).length ? "everything" : "";
        const share = one.share ? [`${percent(one.share)} of ${one.classes.length ? "the rest" : "the images"}`] : [];
        return [...one.classes.map(visible), ...share].join(", ");
      };
      const shared = Object.keys(plan.people).length > 0;
      table("people-table", ["Name", "Answers", "Yes / no / unsure", "Minutes", "Per minute",
        ...(gold ? ["Gold questions"] : []), ...(shared ? ["Asked about"] : [])], people.map((one) => [
        visible(one.name), number(one.answers),
        ["present", "absent", "unsure"].map((word) => number(one.words[word] || 0)).join(" / "),
        one.minutes && one.minutes < 1 ? "under 1" : number(one.minutes), one.per_minute === null ? "–" : number(one.per_minute),
        ...(gold ? [one.gold ? `${one.gold[0]} of ${one.gold[1]} (${percent(one.gold[2])} to ${percent(one.gold[3])})` : "–"] : []),
        ...(shared ? [part(one.name)] : []),
      ]));
      byId("no-agreement").hidden = agreement.length > 0;
      byId("agreement-table").hidden = !agreement.length;
      byId("agreement-words").hidden = !agreement.length;
      table("agreement-table", ["Between", "Shared pairs", "Same answer", "Kappa", "Alpha"], agreement.map((one) => [
        one.people.length ? one.people.map(visible).join(" and ") : "All together", number(one.pairs),
        percent(one.same / one.pairs), measured(one.kappa), measured(one.alpha),
      ]));
      byId("share").hidden = !mayAssign;
      this.#showPlan(plan, people.map((one) => one.name));
    }

    // ---- work to share -------------------------------------------------------------------------

    #showPlan(plan, names) {
      byId("overlap").value = Math.round(100 * (Object.keys(plan.people).length ? plan.overlap : 0.1));
      byId("share-remark").textContent = plan.remark;
      byId("shares").replaceChildren();
      [...new Set([...Object.keys(plan.people), ...names])].forEach((name) => this.#row(name, plan.people[name]));
    }

    #row(name, { share = 0, classes = [] } = {}) {
      const row = make("div", "person");
      row.dataset.name = name;
      const field = make("input");
      Object.assign(field, { type: "number", min: 0, max: 100, step: "any", value: Math.round(1000 * share) / 10 });
      field.setAttribute("aria-label", `Share of ${visible(name)} in percent`);
      const percentage = make("label", "percent");
      percentage.append(field, "%");
      const chosen = make("span", "chips");
      const add = make("input", "add");
      add.placeholder = "and whole classes";
      add.setAttribute("list", "class-names");
      add.setAttribute("aria-label", `Whole classes for ${visible(name)}`);
      const take = () => {
        if (!this.names.includes(add.value)) return;
        this.#chip(chosen, add.value);
        add.value = "";
      };
      add.addEventListener("input", take);
      add.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        const begins = this.names.filter((one) => one.toLowerCase().startsWith(add.value.trim().toLowerCase()));
        if (add.value.trim() && begins.length === 1) { [add.value] = begins; take(); }
      });
      classes.forEach((one) => this.#chip(chosen, one));
      row.append(make("b", "", visible(name)), percentage, chosen, add);
      byId("shares").append(row);
      return row;
    }

    #chip(chosen, name) {
      if ([...chosen.children].some((one) => one.dataset.name === name)) return;
      const chip = make("button", "chip", `${visible(name)} ×`);
      chip.type = "button";
      chip.dataset.name = name;
      chip.setAttribute("aria-label", `Take ${visible(name)} away`);
      chip.addEventListener("click", () => chip.remove());
      chosen.append(chip);
    }

    #rows() {
      return [...byId("shares").children];
    }

    #addPerson() {
      const name = byId("new-person").value.trim().normalize("NFC");
      if (!name || this.#rows().some((row) => row.dataset.name === name)) return;
      this.#row(name).querySelector("input").select();
      byId("new-person").value = "";
    }

    #evenly() {
      const rows = this.#rows();
      rows.forEach((row) => { row.querySelector("[type=number]").value = Math.floor(1000 / rows.length) / 10; });
    }

    #everybody() {
      this.#rows().forEach((row) => {
        row.querySelector("[type=number]").value = 0;
        row.querySelector(".chips").replaceChildren();
      });
      this.#assign();
    }

    async #assign() {
      const people = Object.fromEntries(this.#rows().map((row) => [row.dataset.name, {
        share: Number(row.querySelector("[type=number]").value) / 100,
        classes: [...row.querySelectorAll(".chip")].map((chip) => chip.dataset.name),
      }]));
      try {
        this.#show(await client.assign(this.name(), { people, overlap: Number(byId("overlap").value) / 100 }));
        byId("team-fault").textContent = "";
        this.tell("The work is shared.");
        this.assigned();
      } catch (error) {
        byId("team-fault").textContent = error.message;
      }
    }

    // ---- files ---------------------------------------------------------------------------------

    async #export(button) {
      button.disabled = true;
      byId("team-fault").textContent = "";
      try {
        saveAs(await client.exported(button.dataset.export), FILES[button.dataset.export]);
      } catch (error) {
        byId("team-fault").textContent = error.message;
      } finally {
        button.disabled = false;
      }
    }

    #listenToDrops() {
      const files = (event) => event.dataTransfer?.types.includes("Files");
      const show = (shown) => { byId("drop").hidden = !shown; };
      document.addEventListener("dragover", (event) => {
        if (!files(event)) return;
        event.preventDefault();
        show(true);
      });
      document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) show(false); });
      document.addEventListener("drop", (event) => {
        if (!files(event)) return;
        event.preventDefault();
        show(false);
        const [file, ...others] = event.dataTransfer.files;
        if (others.length) this.tell("Drop one file at a time.");
        else this.take(file);
      });
    }

    // Take in a file of answers, as a page without a server saves it.
    async take(file, force = false) {
      if (!file || !this.name()) return;
      byId("other-audit").close();
      byId("team-fault").textContent = "";
      try {
        if (file.size > MOST_BYTES) throw new Error(`${visible(file.name)} is too large to hold answers.`);
        const done = await client.take(this.name(), file.name, await file.text(), force);
        if (done.other_audit) {
          this.file = file;
          byId("other-audit-reason").textContent = done.other_audit;
          byId("other-audit").showModal();
          return;
        }
        const gone = done.foreign ? `; ${plural(done.foreign, "answer was", "answers were")} left out, about pairs that are not listed today` : "";
        const came = done.new ? plural(done.new, "new answer or undo", "new answers and undos") : "nothing new, its answers are here already";
        this.tell(`${visible(file.name)}: ${came}${gone}.`);
        this.taken();
        if (this.dialog.open) this.open();
      } catch (error) {
        byId("team-fault").textContent = error.message;
        if (!this.dialog.open) this.tell(error.message);
      }
    }
  }

  window.Hilltop.Team = Team;
})();
