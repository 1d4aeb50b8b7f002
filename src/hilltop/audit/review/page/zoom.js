"use strict";
// The large picture, with all that is known and was said of it.
window.Hilltop = window.Hilltop || {};

(() => {
  const { chips, comments, make, percent, visible, WORDS } = window.Hilltop;
  const byId = (id) => document.getElementById(id);

  class Zoom {
    // leaving(): where the focus will belong; closed(place): put it there.
    constructor({ picture, leaving, closed }) {
      this.dialog = byId("zoom");
      this.picture = picture;
      this.leaving = leaving;
      this.closed = closed;
      this.large = byId("large");
      this.large.addEventListener("error", () => this.#showPicture(false));
      this.dialog.addEventListener("cancel", (event) => { event.preventDefault(); this.close(); });
      byId("close-zoom").addEventListener("click", () => this.close());
      this.frame = this.large.parentElement;
      this.frame.addEventListener("wheel", (event) => {
        event.preventDefault();
        this.closer(event.deltaY < 0 ? 1.25 : 0.8, event);
      }, { passive: false });
      this.fingers = new Map();
      this.frame.addEventListener("pointerdown", (event) => this.fingers.set(event.pointerId, event));
      ["pointerup", "pointercancel", "pointerleave"].forEach((kind) => this.frame.addEventListener(
        kind, (event) => this.fingers.delete(event.pointerId)));
      this.frame.addEventListener("pointermove", (event) => this.#dragged(event));
      this.large.draggable = false;
      this.far();
    }

    // The whole picture.
    far() {
      this.scale = 1;
      this.#place(0, 0);
    }

    // Go closer, or further away, around where the pointer is; else around the middle.
    closer(factor, at = null) {
      const box = this.frame.getBoundingClientRect();
      const [x, y] = at ? [at.clientX - box.left, at.clientY - box.top] : [box.width / 2, box.height / 2];
      const scale = Math.min(12, Math.max(1, this.scale * factor));
      const change = scale / this.scale;
      this.scale = scale;
      this.#place(x - change * (x - this.x), y - change * (y - this.y));
    }

    // One finger, or the mouse, moves the picture; two bring it closer.
    #dragged(event) {
      const before = this.fingers.get(event.pointerId);
      if (!before) return;
      const other = [...this.fingers.values()].find((one) => one.pointerId !== event.pointerId);
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      if (!other) this.#place(this.x + event.clientX - before.clientX, this.y + event.clientY - before.clientY);
      else if (apart(before)) {
        const middle = { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
        this.closer(apart(event) / apart(before), middle);
      }
      this.fingers.set(event.pointerId, event);
    }

    #place(x, y) {
      const box = this.frame.getBoundingClientRect();
      const within = (value, size) => Math.min(0, Math.max(size * (1 - this.scale), value));
      this.x = within(x, box.width);
      this.y = within(y, box.height);
      this.large.style.transform = this.scale > 1
        ? `translate(${this.x}px, ${this.y}px) scale(${this.scale})` : "";
      this.frame.classList.toggle("close", this.scale > 1);
    }

    get isOpen() {
      return this.dialog.open;
    }

    open(pair, question, chance) {
      this.show(pair, question, chance);
      if (!this.isOpen) this.dialog.showModal();
    }

    show(pair, question, chance) {
      this.far();
      this.#showPicture(pair.picture);
      if (pair.picture) this.large.src = this.picture(pair.row, "large");
      else this.large.removeAttribute("src");
      this.dialog.dataset.answer = pair.answer || "";
      const said = pair.answer ? ` Answered ${WORDS[pair.answer]}.` : "";
      byId("zoom-question").textContent = `${question}${said}`;
      byId("zoom-chance").textContent = pair.probability === null ? ""
        : `${chance}: ${percent(pair.probability)}`;
      byId("zoom-name").textContent = visible(pair.image);
      byId("zoom-labels").replaceChildren(...chips(pair.labels));
      byId("zoom-about").replaceChildren(...Object.entries(pair.about || {}).map(([column, cell]) => {
        const one = make("span");
        one.append(make("i", "", `${visible(column)} `), visible(cell));
        return one;
      }));
      byId("zoom-comments").replaceChildren(...comments(pair.comments));
    }

    close() {
      // Closing gives the focus back to the picture that was zoomed first, which may be long past.
      const place = this.leaving();
      this.dialog.close();
      this.closed(place);
    }

    #showPicture(there) {
      this.large.hidden = !there;
      byId("no-large").hidden = there;
    }
  }

  window.Hilltop.Zoom = Zoom;
})();
