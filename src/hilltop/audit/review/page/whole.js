"use strict";
// Image by image: one picture, its labels to keep or strike, what it may lack, and any other class.
window.Hilltop = window.Hilltop || {};

(() => {
  const { comments, fileName, make, percent, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const SAYS = {
    label: { present: "keep", absent: "strike", unsure: "unsure" },
    candidate: { present: "yes", absent: "no", unsure: "unsure" },
  };

  class Whole {
    // load(place): asks for a page; answered(items, word): sends answers; say(text): is heard.
    constructor({ picture, load, answered, say }) {
      Object.assign(this, { picture, load, answered, say, page: null, rows: [], at: 0 });
      this.section = byId("whole");
      this.section.addEventListener("click", (event) => this.#clicked(event));
      this.section.addEventListener("focusin", (event) => {
        const place = this.rows.indexOf(event.target.closest(".item"));
        if (place >= 0) this.#enter(place);
      });
      byId("add-form").addEventListener("submit", (event) => { event.preventDefault(); this.#add(); });
      byId("add-class").addEventListener("keydown", (event) => {
        if (event.key === "Escape") this.focus(this.at);
      });
      byId("rest").addEventListener("click", () => this.rest());
    }

    get isOpen() {
      return !this.section.hidden;
    }

    offer(names) {
      this.names = names;
      byId("class-names").replaceChildren(...names.map((name) => {
        const option = make("option");
        option.value = name;
        return option;
      }));
    }

    // `place`: the row that gets the focus; without it the first open one.
    show(page, place = null) {
      this.page = page;
      this.#showPicture(page);
      byId("whole-name").replaceChildren(fileName(visible(page.image)));
      byId("add-class").value = byId("add-fault").textContent = "";
      this.#list();
      const open = page.items.findIndex((item) => !item.label && !item.answer);
      this.focus(place ?? Math.max(0, open));
    }

    #showPicture({ picture, row }) {
      const none = () => byId("whole-frame").replaceChildren(make("p", "", "There is no picture."));
      if (!picture) return none();
      const image = make("img");
      image.alt = "";
      image.addEventListener("error", none);
      image.src = this.picture(row, "large");
      byId("whole-frame").replaceChildren(image);
    }

    // The answer of the row that has the focus.
    answer(word) {
      if (!this.page?.items.length) return;
      this.#take([this.page.items[this.at]], word);
      const next = this.page.items.findIndex((item, at) => at > this.at && !item.label && !item.answer);
      this.focus(next < 0 ? Math.min(this.at + 1, this.rows.length - 1) : next);
    }

    // "None of the rest": no to what is open among the candidates, and on to the next picture.
    rest() {
      if (!this.page) return;
      const open = this.page.items.filter((item) => !item.label && !item.answer);
      if (open.length) this.#take(open, "absent");
      this.turn(1);
    }

    turn(step) {
      const place = this.page.place + step;
      if (place >= 0 && place < this.page.total) this.load(place);
      else this.say(step > 0 ? "That was the last picture." : "This is the first picture.");
    }

    move(key) {
      if (key === "ArrowRight" || key === "ArrowLeft") this.turn(key === "ArrowRight" ? 1 : -1);
      else if (key === "Home" || key === "End") this.focus(key === "Home" ? 0 : this.rows.length - 1);
      else this.focus(this.at + (key === "ArrowDown" ? 1 : -1));
    }

    focus(place) {
      if (!this.rows.length) return this.section.focus();
      this.#enter(Math.max(0, Math.min(place, this.rows.length - 1)));
      this.rows[this.at].focus({ preventScroll: true });
      this.rows[this.at].scrollIntoView({ block: "nearest" });
    }

    #enter(place) {
      this.rows[this.at]?.setAttribute("tabindex", "-1");
      this.at = place;
      this.rows[place].setAttribute("tabindex", "0");
    }

    #take(items, word) {
      this.answered(this.page, items, word);
      items.forEach((item) => { item.answer = word; });
      this.#list();
    }

    #add() {
      const field = byId("add-class");
      const wanted = field.value.trim().toLowerCase();
      const fits = this.names.filter((name) => name.toLowerCase() === wanted);
      const begins = this.names.filter((name) => wanted && name.toLowerCase().startsWith(wanted));
      const name = fits[0] ?? (begins.length === 1 ? begins[0] : null);
      byId("add-fault").textContent = name === null
        ? (begins.length ? `${begins.length} classes begin like that: choose one.` : "There is no such class.") : "";
      if (name === null) return;
      field.value = "";
      let item = this.page.items.find((one) => one.class === name);
      if (!item) {
        item = { class: name, label: false, probability: null, answer: null, others: null };
        this.page.items.push(item);
      }
      this.#take([item], "present");
      field.focus();
    }

    #clicked(event) {
      const row = event.target.closest(".item");
      const place = this.rows.indexOf(row);
      if (place < 0) return;
      this.focus(place);
      const { word } = event.target.closest("button")?.dataset ?? {};
      if (word) this.#take([this.page.items[place]], word);
      if (word) this.focus(place);
    }

    #list() {
      this.rows = this.page.items.map((item) => this.#row(item));
      const of = (label) => this.rows.filter((_, at) => this.page.items[at].label === label);
      byId("whole-labels").replaceChildren(...of(true));
      byId("whole-lacks").replaceChildren(...of(false));
      byId("whole-no-labels").hidden = of(true).length > 0;
      this.at = Math.min(this.at, Math.max(0, this.rows.length - 1));
      this.rows[this.at]?.setAttribute("tabindex", "0");
    }

    #row(item) {
      const kind = item.label ? "label" : "candidate";
      const row = make("div", "item");
      const chance = item.probability === null ? "" : `${percent(item.probability)}${item.label ? " wrong" : ""}`;
      const said = item.answer ? SAYS[kind][item.answer] : "";
      Object.entries({ role: "group", tabindex: "-1", "data-answer": item.answer || "" })
        .forEach(([name, value]) => row.setAttribute(name, value));
      row.setAttribute("aria-label", [visible(item.class), chance, said ? `answered ${said}` : "not answered"]
        .filter(Boolean).join(", "));
      const buttons = make("span", "words");
      buttons.append(...["present", "absent", "unsure"].map((word) => {
        const button = make("button", word === item.answer ? "said" : "", SAYS[kind][word]);
        Object.assign(button, { type: "button", tabIndex: -1 });
        button.setAttribute("aria-pressed", String(word === item.answer));
        Object.assign(button.dataset, { word });
        return button;
      }));
      const others = (item.others || []).map((one) => make("small", "other", `${visible(one.reviewer)}: ${SAYS[kind][one.answer]}`));
      row.append(make("span", "item-name", visible(item.class)), ...others, make("span", "chance", chance), buttons, ...comments(item.comments));
      return row;
    }
  }

  window.Hilltop.Whole = Whole;
})();
