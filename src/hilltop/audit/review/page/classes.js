"use strict";
// The list of classes: what was found of each, which one is shown, and which comes next.
window.Hilltop = window.Hilltop || {};

(() => {
  const { about, hoped, make, number, plural, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const DRAWN = 200; // so many at a time: a browser needs a minute for twenty thousand

  class ClassList {
    constructor({ chosen }) {
      this.list = byId("class-list");
      this.filter = byId("filter");
      this.classes = [];
      this.buttons = new Map();
      this.places = new Map();
      this.current = -1;
      this.purpose = "labels";
      this.wrong = false;
      this.filter.addEventListener("input", () => this.#draw());
      this.filter.addEventListener("keydown", (event) => {
        const [first] = this.buttons.values();
        if (event.key === "Enter" && first) first.click();
        if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
      });
      this.list.addEventListener("keydown", (event) => this.#walk(event));
      this.list.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button?.dataset.number) chosen(Number(button.dataset.number));
        else if (button) this.#further(Number(button.dataset.from));
      });
    }

    // What the audit said of how labels were lost; it stands where nothing is expected.
    describe(summary) {
      this.summary = summary;
    }

    // For labels, the classes with the most missing ones to be found come first; for the model,
    // those of which an answer teaches it most.
    order(purpose) {
      this.purpose = purpose;
      this.show(this.classes);
    }

    // Whether the list is of labels that are wrong; then classes with most of them come first.
    ask(wrong) {
      if (wrong === this.wrong) return;
      this.wrong = wrong;
      this.order(this.purpose);
    }

    #before(a, b) {
      if (this.wrong) return b.wrong.expected - a.wrong.expected || b.wrong.labels - a.wrong.labels;
      const key = this.purpose === "model" ? "worth" : "expected";
      return b[key] - a[key] || b.listed - a.listed; // where nothing is expected, by what is listed
    }

    show(classes) {
      this.classes = [...classes].sort((a, b) => this.#before(a, b) || a.number - b.number);
      this.places = new Map(this.classes.map((one, place) => [one.number, place]));
      this.#totals();
      this.#reveal();
    }

    update(summary) {
      if (!this.places.has(summary.number)) return;
      this.classes[this.places.get(summary.number)] = summary;
      this.#write(summary);
      this.#totals();
    }

    #button(one) {
      const button = make("button");
      button.type = "button";
      button.tabIndex = -1; // one stop for the whole list; arrows walk in it
      button.dataset.number = one.number;
      const bar = make("span", "bar");
      bar.append(make("i"));
      button.append(make("span", "class-name", visible(one.name)), make("span", "count"), bar);
      return button;
    }

    #write(summary) {
      const button = this.buttons.get(summary.number);
      if (!button) return;
      const { found, of, words } = this.#task(summary);
      const wanted = Math.max(of ?? 0, found, 1);
      button.querySelector(".count").textContent = `${number(found)} / ${of === null ? "–" : about(of)}`;
      button.querySelector("i").style.width = `${(100 * Math.min(1, found / wanted)).toFixed(1)}%`;
      button.classList.toggle("done", !summary.worthwhile && !this.wrong);
      button.classList.toggle("disputed", summary.disputed > 0);
      const parts = [
        `${visible(summary.name)}: ${words}`,
        `${summary.mine} answered by you`,
        summary.disputed ? plural(summary.disputed, "disagreement", "disagreements") : "",
        summary.worthwhile || this.wrong ? "" : "hardly worth more time",
      ];
      button.setAttribute("aria-label", parts.filter(Boolean).join(", "));
      button.title = parts.slice(1).filter(Boolean).join(", ");
    }

    // What was found of a class, of how many; null where none is expected.
    #task({ wrong, present, expected, most }) {
      if (this.wrong) {
        const of = wrong.expected || null;
        return { found: wrong.struck, of, words: `${wrong.struck} struck${of ? ` of about ${about(of)} wrong` : ", no sign of wrong ones"}` };
      }
      const words = hoped({ expected, most });
      return most === null ? { found: present, of: expected, words: `${present} found ${words} expected` }
        : { found: present, of: null, words: `${present} found, ${words}` };
    }

    choose(chosen) {
      this.current = chosen;
      if (this.buttons.has(chosen)) this.#mark();
      else this.#reveal();
    }

    #mark() {
      this.buttons.forEach((button) => {
        button.removeAttribute("aria-current");
        button.tabIndex = -1;
      });
      const button = this.buttons.get(this.current);
      button?.setAttribute("aria-current", "true");
      const stop = button ?? this.buttons.values().next().value;
      if (stop) stop.tabIndex = 0;
      button?.scrollIntoView({ block: "nearest" });
    }

    // The class before or behind the current one; only worthwhile ones if asked for.
    neighbour(step, worthwhile = false) {
      let place = this.places.get(this.current) + step;
      const fits = (one) => this.#isOffered(one) && (one.worthwhile || !worthwhile);
      while (this.classes[place] && !fits(this.classes[place])) place += step;
      return this.classes[place] || null;
    }

    get(chosen) {
      return this.classes[this.places.get(chosen)] || null;
    }

    // Whether classes that one is not asked about are left out.
    narrow(mine = false) {
      this.mine = mine;
      this.#reveal();
    }

    get first() {
      return this.classes.find((one) => this.#isOffered(one)) ?? this.classes[0];
    }

    #isOffered(one) {
      return !this.mine || one.part !== false;
    }

    // Whether the audit expects no missing label, and no answer has changed that.
    get nothing() {
      return this.classes.length > 0 && this.classes.every((one) => one.most !== null);
    }

    #totals() {
      const sum = (key) => this.classes.reduce((total, one) => total + one[key], 0);
      if (this.wrong) {
        const [struck, wrong] = ["struck", "expected"].map((key) => this.classes.reduce((all, one) => all + one.wrong[key], 0));
        byId("totals").textContent = `${plural(struck, "label", "labels")} struck, ${wrong ? `about ${about(wrong)} wrong` : "no sign of wrong ones"}`;
        return;
      }
      const among = this.nothing ? ", none expected" : ` of about ${about(sum("expected"))} expected`;
      const summary = this.summary ? `. ${this.summary}` : "";
      byId("totals").textContent = byId("totals").title = `${number(sum("present"))} found${among},`
        + ` ${number(sum("mine"))} answered by you${summary}`;
    }

    // Show all classes again. Not left to the browser, which empties the field without a word.
    findAll() {
      this.filter.value = "";
      this.#reveal();
    }

    get #fitting() {
      const wanted = this.filter.value.trim().toLowerCase();
      return this.classes.filter((one) => this.#isOffered(one) && one.name.toLowerCase().includes(wanted));
    }

    // Draw the part of the list that holds the current class.
    #reveal() {
      const place = this.#fitting.findIndex((one) => one.number === this.current);
      this.#draw(Math.max(0, place - (place % DRAWN)));
    }

    // Draw the classes that fit from a place on, with a way to those before and behind.
    #draw(from = 0) {
      const fitting = this.#fitting;
      this.from = from;
      const drawn = fitting.slice(from, from + DRAWN);
      this.buttons = new Map(drawn.map((one) => [one.number, this.#button(one)]));
      const rows = [...this.buttons.values()];
      const behind = fitting.length - from - drawn.length;
      if (from) rows.unshift(this.#way(`${number(from)} before these`, from - DRAWN));
      if (behind) rows.push(this.#way(`${number(behind)} more: go on, or type to find them`, from + DRAWN));
      this.list.replaceChildren(...rows.map((button) => {
        const item = make("li");
        item.append(button);
        return item;
      }));
      drawn.forEach((one) => this.#write(one));
      byId("none-found").hidden = drawn.length > 0;
      this.list.scrollTop = 0;
      this.#mark();
    }

    #way(words, from) {
      const button = make("button", "further", words);
      button.type = "button";
      button.tabIndex = -1;
      button.dataset.from = from;
      return button;
    }

    // The next part begins at its first class, the one before ends at its last.
    #further(from) {
      const back = from < this.from;
      this.#draw(from);
      [...this.buttons.values()].at(back ? -1 : 0).focus();
    }

    #walk(event) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const shown = [...this.list.querySelectorAll("button")];
      const next = shown[shown.indexOf(document.activeElement) + step];
      (next || (step < 0 ? this.filter : document.activeElement)).focus();
    }
  }

  window.Hilltop.ClassList = ClassList;
})();
