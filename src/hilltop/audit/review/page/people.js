"use strict";
// Who is reviewing: the name, how it goes from one device to another, and what one writes of a pair.
window.Hilltop = window.Hilltop || {};

(() => {
  const { Away, client, number, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const ASK_MS = 1000;
  const LOOK_MS = 5000;
  const LONGEST_COMMENT = 2000;

  // Ask who is reviewing; the browser keeps the name.
  class Reviewer {
    // given(): there is a name now, which may be a new one.
    constructor({ given }) {
      this.name = "";
      this.given = given;
      this.dialog = byId("who");
      byId("who-form").addEventListener("submit", (event) => this.#take(event));
      byId("name").addEventListener("input", () => { byId("take-over").hidden = true; });
      byId("take-over").addEventListener("click", () => this.#takeOver());
      byId("reviewer").addEventListener("click", () => this.ask());
      this.dialog.addEventListener("cancel", (event) => { if (!this.name) event.preventDefault(); });
      this.dialog.addEventListener("close", () => { this.asking = false; });
      ["hand-over", "keep-name"].forEach((id) => byId(id).addEventListener("click", () => this.#reply(id)));
      byId("asked").addEventListener("cancel", (event) => event.preventDefault());
      try { this.name = localStorage.getItem("hilltop-reviewer") || ""; } catch { /* asked then */ }
      if (client.nameState) setInterval(() => this.#look(), LOOK_MS);
    }

    // `fault`: why the name of before will not do; `taken`: it is in use on another device.
    ask(fault = "", taken = false) {
      byId("name").value = this.name;
      this.#tell(fault);
      byId("take-over").hidden = !taken;
      if (fault) this.name = "";
      if (!this.dialog.open) this.dialog.showModal();
      byId("name").select();
    }

    #take(event) {
      event.preventDefault();
      const name = byId("name").value.trim().normalize("NFC");
      if (!name) return this.#tell("Please give a name.");
      this.#go(name);
    }

    // Why a name will not do, or that it is waited for.
    #tell(text, waiting = false) {
      byId("name-fault").textContent = text;
      byId("name-fault").classList.toggle("waiting", waiting);
    }

    #go(name) {
      this.spelled(name);
      this.dialog.close();
      this.given();
    }

    // The name as it is kept: who types "ann" is no other person than "Ann".
    spelled(name) {
      this.name = name;
      byId("reviewer").textContent = visible(name);
      byId("reviewer").setAttribute("aria-label", `${visible(name)}, change reviewer`);
      try { localStorage.setItem("hilltop-reviewer", name); } catch { /* asked again next time */ }
    }

    // "It is me": the other device is asked; if it is away, the name comes here at once.
    async #takeOver() {
      const name = byId("name").value.trim().normalize("NFC");
      byId("take-over").hidden = true;
      this.asking = true;
      while (this.asking) {
        try {
          const { reply } = await client.nameWish(name, "ask");
          if (!this.asking) return;
          if (reply === "given") return this.#go(name);
          if (reply === "refused") return this.#tell("The other device keeps the name. Choose another one.");
          this.#tell("Confirm it on the other device. Without an answer there, the name comes here after half a minute.", true);
        } catch (error) {
          this.#tell(error.message);
          if (!(error instanceof Away)) return;
        }
        await new Promise((done) => { setTimeout(done, ASK_MS); });
      }
    }

    // Whether another device asks for the name, or has it by now.
    async #look() {
      const { name } = this;
      if (!name || this.dialog.open) return;
      try {
        const { mine, asked } = await client.nameState(name);
        if (name !== this.name || this.dialog.open) return;
        if (!mine) {
          byId("asked").close();
          return this.ask(`You go on as ${visible(name)} on another device.`, true);
        }
        byId("asked-name").textContent = visible(name);
        if (asked && !byId("asked").open) byId("asked").showModal();
        if (!asked) byId("asked").close();
      } catch { /* the server is away, which the answers say */ }
    }

    async #reply(id) {
      byId("asked").close();
      try {
        await client.nameWish(this.name, id === "hand-over" ? "hand over" : "keep");
      } catch { /* asked again if it still matters */ }
      this.#look();
    }
  }

  // A window for what somebody writes about one pair.
  class CommentBox {
    // kept(pair, text): the text is to be stored; closed(): the focus belongs elsewhere again.
    constructor({ kept, closed }) {
      this.dialog = byId("comment");
      byId("comment-form").addEventListener("submit", (event) => {
        event.preventDefault();
        const text = byId("comment-text").value.trim();
        // Nothing is cut off in silence: who pasted too much shortens it.
        if ([...text].length > LONGEST_COMMENT) {
          byId("comment-fault").textContent = `At most ${number(LONGEST_COMMENT)} characters; these are ${number([...text].length)}.`;
          return;
        }
        this.dialog.close();
        kept(this.pair, text);
      });
      byId("comment-text").addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        byId("comment-form").requestSubmit();
      });
      byId("drop-comment").addEventListener("click", () => this.dialog.close());
      this.dialog.addEventListener("close", closed);
    }

    // `pair` has a class, an image and the comments so far.
    open(pair, reviewer) {
      this.pair = pair;
      byId("comment-title").textContent = `${visible(pair.class)} in ${visible(pair.image)}`;
      byId("comment-fault").textContent = "";
      byId("comment-text").value = (pair.comments || []).find((one) => one.reviewer === reviewer)?.text ?? "";
      this.dialog.showModal();
      byId("comment-text").select();
    }
  }

  // The comments on a pair with what somebody wrote in place of what they wrote before.
  function withComment(comments, reviewer, text) {
    const others = (comments || []).filter((one) => one.reviewer !== reviewer);
    return text ? [...others, { reviewer, text }] : others;
  }

  Object.assign(window.Hilltop, { CommentBox, Reviewer, withComment });
})();
