"use strict";
// The large picture, and the small windows: keys and the name of the reviewer.
window.Hilltop = window.Hilltop || {};

(() => {
  const { chips, visible, WORDS } = window.Hilltop;
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
    }

    get isOpen() {
      return this.dialog.open;
    }

    open(pair, name) {
      this.show(pair, name);
      if (!this.isOpen) this.dialog.showModal();
    }

    show(pair, name) {
      this.#showPicture(pair.picture);
      if (pair.picture) this.large.src = this.picture(pair.row, "large");
      else this.large.removeAttribute("src");
      this.dialog.dataset.answer = pair.answer || "";
      const said = pair.answer ? ` Answered ${WORDS[pair.answer]}.` : "";
      byId("zoom-question").textContent = `Is “${visible(name)}” in the picture?${said}`;
      byId("zoom-name").textContent = visible(pair.image);
      byId("zoom-labels").replaceChildren(...chips(pair.labels));
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

  // Ask who is reviewing; the browser keeps the name.
  class Reviewer {
    constructor({ given }) {
      this.name = "";
      this.given = given;
      this.dialog = byId("who");
      byId("who-form").addEventListener("submit", (event) => this.#take(event));
      byId("reviewer").addEventListener("click", () => this.ask());
      this.dialog.addEventListener("cancel", (event) => { if (!this.name) event.preventDefault(); });
      try { this.name = localStorage.getItem("hilltop-reviewer") || ""; } catch { /* asked then */ }
    }

    ask() {
      byId("name").value = this.name;
      byId("name-fault").textContent = "";
      this.dialog.showModal();
      byId("name").select();
    }

    #take(event) {
      event.preventDefault();
      const name = byId("name").value.trim().normalize("NFC");
      if (!name) {
        byId("name-fault").textContent = "Please give a name.";
        return;
      }
      this.name = name;
      try { localStorage.setItem("hilltop-reviewer", name); } catch { /* asked again next time */ }
      this.dialog.close();
      this.given();
    }
  }

  Object.assign(window.Hilltop, { Zoom, Reviewer });
})();
