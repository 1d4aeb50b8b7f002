"use strict";
// What the pictures are narrowed to: a part of a name, those like one of them, one's own work.
window.Hilltop = window.Hilltop || {};

(() => {
  const { fileName, make, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const PAUSE_MS = 300;

  class PictureSearch {
    // changed(): what is looked for is new; closed(): the focus belongs to the pictures again.
    constructor({ picture, changed, closed }) {
      Object.assign(this, { picture, changed, closed, like: null, part: false, mine: true });
      const later = () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.#run(), PAUSE_MS);
      };
      byId("search-text").addEventListener("input", later);
      byId("search-column").addEventListener("change", () => byId("search-text").value && this.#run());
      byId("search").addEventListener("submit", (event) => { event.preventDefault(); this.#run(); closed(); });
      byId("search").addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
      byId("close-search").addEventListener("click", () => this.close());
      byId("find").addEventListener("click", () => this.open());
      byId("work").addEventListener("click", (event) => {
        const { mine } = event.target.closest("button")?.dataset ?? {};
        if (mine) this.share(this.part, mine === "true", true);
      });
    }

    // Columns there are to search by; null for a page that cannot search.
    offer(columns) {
      byId("find").hidden = !columns;
      const chosen = byId("search-column").value;
      byId("search-column").replaceChildren(...["image", ...columns || []].map((name, at) => {
        const option = make("option", "", at ? visible(name) : "File name");
        option.value = name;
        return option;
      }));
      byId("search-column").value = (columns || []).includes(chosen) ? chosen : "image";
      byId("search-column").hidden = !columns?.length;
    }

    // Whether one has a part of the work, and looks at that part alone.
    share(part, mine = this.mine, told = false) {
      Object.assign(this, { part, mine });
      byId("work").hidden = !part;
      byId("work").querySelectorAll("button").forEach((button) =>
        button.setAttribute("aria-pressed", String(mine === (button.dataset.mine === "true"))));
      if (told) this.changed();
    }

    // What a question to the server is narrowed to.
    get asked() {
      const text = byId("search-text").value.trim();
      return {
        ...text && !byId("search").hidden ? { text, column: byId("search-column").value } : {},
        ...this.like ? { like: this.like.row } : {},
        ...this.part && this.mine ? { mine: true } : {},
      };
    }

    get isOn() {
      return Boolean(this.like || this.asked.text);
    }

    open() {
      byId("search").hidden = false;
      byId("find").setAttribute("aria-expanded", "true");
      byId("search-text").select();
    }

    // Those that look like a picture come first.
    alike(pair) {
      this.like = pair;
      byId("search").hidden = false;
      const shown = make("img");
      if (pair.picture) Object.assign(shown, { alt: "", src: this.picture(pair.row, "small") });
      byId("like").replaceChildren("Most like", ...(pair.picture ? [shown] : []), fileName(visible(pair.image)));
      byId("like").hidden = false;
      this.changed();
    }

    // Look for nothing any more; false if that was so.
    close() {
      const { isOn } = this;
      const open = !byId("search").hidden;
      clearTimeout(this.timer);
      this.like = null;
      byId("search-text").value = "";
      byId("search").hidden = byId("like").hidden = true;
      byId("find").setAttribute("aria-expanded", "false");
      if (isOn) this.changed();
      else if (open) this.closed();
      return open;
    }

    #run() {
      clearTimeout(this.timer);
      this.changed();
    }
  }

  window.Hilltop.PictureSearch = PictureSearch;
})();
