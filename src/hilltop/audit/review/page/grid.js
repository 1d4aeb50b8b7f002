"use strict";
// The grid of pictures: tiles, focus, selection and the ways of the arrow keys. No answers here.
window.Hilltop = window.Hilltop || {};

(() => {
  const MARKS = { present: "✓", absent: "✕", unsure: "?" };
  const { WORDS, chips, comments, fileName, make, percent, visible } = window.Hilltop;

  class Grid {
    constructor(element, { picture, opened, moved, clicked }) {
      this.element = element;
      this.picture = picture;
      this.opened = opened;
      this.moved = moved;
      this.clicked = clicked;
      this.pairs = [];
      this.tiles = [];
      this.at = 0;
      this.anchor = 0;
      this.selection = new Set();
      this.selecting = false;
      this.seen = new Set();
      // Half a picture in sight counts as seen.
      this.watcher = new IntersectionObserver((found) => found.forEach(({ isIntersecting, target }) => {
        if (isIntersecting) this.seen.add(target);
      }), { threshold: 0.5 });
      element.addEventListener("click", (event) => this.#clicked(event));
      element.addEventListener("dblclick", (event) => this.#tileOf(event) >= 0 && this.opened());
      element.addEventListener("focusin", (event) => {
        const place = this.#tileOf(event);
        if (place >= 0 && place !== this.at) this.#enter(place);
      });
    }

    // Probabilities are of being missing, or with a word behind them of something else.
    show(pairs, chance = "") {
      this.pairs = pairs;
      this.chance = chance;
      this.selection.clear();
      this.tiles = pairs.map((pair, place) => this.#tile(pair, place));
      this.element.replaceChildren(...this.tiles);
      this.seen.clear();
      this.watcher.disconnect();
      this.tiles.forEach((tile) => this.watcher.observe(tile));
      pairs.forEach((_, place) => this.update(place));
      this.#showAlike();
      this.#enter(0);
    }

    // Write the changeable parts of a tile anew.
    update(place) {
      const pair = this.pairs[place];
      const tile = this.tiles[place];
      tile.dataset.answer = pair.answer || "";
      tile.classList.toggle("waiting", Boolean(pair.waiting));
      tile.querySelector(".mark").textContent = pair.answer ? MARKS[pair.answer] : "";
      tile.querySelector(".others").replaceChildren(...this.#others(pair));
      tile.querySelector(".comments").replaceChildren(...comments(pair.comments));
      const others = (pair.others || []).map((one) => `${one.reviewer} says ${WORDS[one.answer]}`);
      tile.setAttribute("aria-label", [
        pair.class === undefined ? "" : `${visible(pair.class)}?`,
        visible(pair.image),
        pair.probability === null ? "" : `probability ${percent(pair.probability)}${this.chance}`,
        pair.labels.length ? `known labels ${pair.labels.map(visible).join(", ")}` : "no known labels",
        pair.answer ? `answered ${WORDS[pair.answer]}` : "not answered",
        pair.waiting ? "waiting to be saved" : "",
        ...others,
        ...(pair.comments || []).map((one) => `${visible(one.reviewer)} writes: ${visible(one.text)}`),
      ].filter(Boolean).join(", "));
    }

    focus(place, { scroll = true } = {}) {
      if (!this.tiles.length) return;
      this.#enter(Math.max(0, Math.min(place, this.tiles.length - 1)));
      const tile = this.tiles[this.at];
      tile.focus({ preventScroll: true });
      if (scroll) tile.scrollIntoView({ block: "nearest" });
    }

    // Move by an arrow key; false if there is nothing in that direction.
    move(key, extend) {
      const columns = getComputedStyle(this.element).gridTemplateColumns.split(" ").length;
      const last = this.tiles.length - 1;
      const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
      let to = key === "Home" ? 0 : key === "End" ? last : this.at + steps[key];
      if (key === "ArrowDown" && to > last && Math.floor(this.at / columns) < Math.floor(last / columns)) {
        to = last;
      }
      if (to < 0 || to > last) return false;
      const { anchor } = this; // the focus takes it along where nothing is selected yet
      this.focus(to);
      if (extend) {
        this.anchor = anchor;
        this.#selectRange(anchor, to);
      } else this.clear();
      return true;
    }

    // The places that an answer is for: what is selected, else where the focus is, together with
    // open pictures that are near-duplicates of it.
    targets() {
      if (this.selection.size) return [...this.selection].sort((a, b) => a - b);
      return this.tiles.length ? this.#together(this.at) : [];
    }

    // Selected places that were never on the screen.
    unseen() {
      return [...this.selection].filter((place) => !this.seen.has(this.tiles[place])).sort((a, b) => a - b);
    }

    scrollTo(place) {
      this.tiles[place].scrollIntoView({ block: "start" });
    }

    // Answer the near-duplicates of a picture one by one.
    split() {
      this.#together(this.at).forEach((place) => { this.pairs[place].alike = null; });
      this.#showAlike();
    }

    #together(place) {
      const { alike, answer } = this.pairs[place];
      if (typeof alike !== "number" || answer) return [place];
      return this.pairs.map((pair, at) => (pair.alike === alike && !pair.answer ? at : -1)).filter((at) => at >= 0);
    }

    #showAlike() {
      this.pairs.forEach((pair, place) => {
        const count = this.pairs.filter((one) => typeof one.alike === "number" && one.alike === pair.alike).length;
        this.tiles[place].classList.toggle("alike", count > 1);
        this.tiles[place].querySelector(".alike-count").textContent = count > 1 ? `${count} alike` : "";
      });
    }

    selectAll() {
      this.#selectRange(0, this.tiles.length - 1);
    }

    // "All but these": what is selected, or has the focus, is left out; so is what was answered.
    invert() {
      const left = new Set(this.targets());
      this.selection.clear();
      this.pairs.forEach((pair, place) => {
        if (!left.has(place) && !pair.answer) this.selection.add(place);
      });
      this.#showSelection();
    }

    clear() {
      this.selection.clear();
      this.anchor = this.at;
      this.#showSelection();
    }

    // First place without an answer behind `place`, or -1.
    nextOpen(place) {
      return this.pairs.findIndex((pair, at) => at > place && !pair.answer);
    }

    #enter(place) {
      this.tiles[this.at]?.setAttribute("tabindex", "-1");
      this.at = place;
      this.tiles[place]?.setAttribute("tabindex", "0");
      if (!this.selection.size) this.anchor = place;
      this.moved();
    }

    #selectRange(from, to) {
      this.selection.clear();
      for (let place = Math.min(from, to); place <= Math.max(from, to); place += 1) {
        this.selection.add(place);
      }
      this.#showSelection();
    }

    #showSelection() {
      this.tiles.forEach((tile, place) =>
        tile.setAttribute("aria-selected", String(this.selection.has(place))));
      this.moved();
    }

    #clicked(event) {
      const place = this.#tileOf(event);
      if (place < 0) return;
      this.clicked();
      const anchor = this.anchor;
      this.focus(place, { scroll: false });
      if (event.shiftKey) {
        this.anchor = anchor;
        this.#selectRange(anchor, place);
      } else if (this.selecting || event.ctrlKey || event.metaKey) {
        if (!this.selection.delete(place)) this.selection.add(place);
        this.anchor = place;
        this.#showSelection();
      } else {
        this.clear();
      }
    }

    #tileOf(event) {
      return this.tiles.indexOf(event.target.closest("[role=option]"));
    }

    #tile(pair, place) {
      const tile = make("div", "tile");
      tile.setAttribute("role", "option");
      tile.setAttribute("tabindex", "-1");
      tile.setAttribute("aria-selected", "false");
      const frame = make("span", "frame");
      const missing = make("span", "missing", pair.picture ? "" : "No picture");
      if (pair.picture) frame.append(this.#image(pair, place, missing));
      frame.append(missing, make("span", "mark"), make("span", "alike-count"));
      const caption = make("span", "caption");
      caption.append(fileName(visible(pair.image)));
      if (pair.probability !== null) caption.append(make("span", "chance", `${percent(pair.probability)}${this.chance}`));
      const known = make("span", "chips");
      known.append(...chips(pair.labels));
      const asks = pair.class === undefined ? [] : [make("b", "asks", `${visible(pair.class)}?`)];
      tile.append(frame, ...asks, caption, known, make("span", "others"), make("span", "comments"));
      return tile;
    }

    #image(pair, place, missing) {
      const image = make("img");
      image.alt = "";
      image.decoding = "async";
      image.addEventListener("error", () => {
        image.remove();
        missing.textContent = "This picture cannot be shown";
      });
      image.src = this.picture(pair.row, "small");
      return image;
    }

    #others(pair) {
      if (pair.others) {
        const said = pair.others.map((one) => {
          const conflict = pair.answer && [pair.answer, one.answer].sort().join() === "absent,present";
          const text = `${visible(one.reviewer)}: ${WORDS[one.answer]}`;
          return make("span", conflict ? "other conflict" : "other", text);
        });
        if (pair.ruling) said.push(make("span", "other ruling", `${visible(pair.ruling.reviewer)} decided: ${WORDS[pair.ruling.answer]}`));
        return said;
      }
      if (!pair.other_count) return [];
      const people = pair.other_count === 1 ? "1 other" : `${pair.other_count} others`;
      return [make("span", "other", `${people} answered`)];
    }
  }

  window.Hilltop.Grid = Grid;
})();
