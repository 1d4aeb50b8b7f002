"use strict";
// Answers on their way to the server. They are kept in the browser until the server has confirmed
// them, so that neither a reload nor a server that is away loses one.
window.Hilltop = window.Hilltop || {};

(() => {
  const AT_ONCE = 500;
  const LONGEST_WAIT_MS = 5000;

  // Not randomUUID, which browsers only offer on this machine or over HTTPS.
  function freshId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  class Queue {
    // changed(): something about waiting, away or refused is new; stored(reply): the server's word.
    constructor(client, audit, { changed, stored }) {
      this.client = client;
      this.prefix = `hilltop-queue:${audit}:`;
      this.key = this.prefix + freshId();
      this.changed = changed;
      this.stored = stored;
      this.waiting = this.#adopt();
      this.refused = [];
      this.away = "";
      this.sending = null;
      this.pause = 500;
      this.timer = 0;
      this.#keep();
    }

    add(reviewer, events) {
      this.waiting.push(...events.map((event) => ({ reviewer, event })));
      this.#keep();
      this.changed();
      return this.flush();
    }

    // The answer to a pair that still waits here: a word, null if it was taken back, or undefined.
    answer(reviewer, name, image, mode) {
      const undone = new Set(this.waiting.filter((one) => one.event.undo).map((one) => one.event.action));
      const fitting = this.waiting.filter(({ reviewer: who, event }) =>
        who === reviewer && event.answer && event.class === name && event.image === image
        && !undone.has(event.action) && (mode === "ranked" || event.mode === mode));
      return fitting.length ? fitting[fitting.length - 1].event.answer : undefined;
    }

    has(id) {
      return this.waiting.some((one) => one.event.id === id);
    }

    // Send all that waits; done when it is stored, or the server turned out to be away.
    flush() {
      this.sending ??= this.#sendAll().finally(() => {
        this.sending = null;
        this.changed();
      });
      return this.sending;
    }

    async #sendAll() {
      clearTimeout(this.timer);
      try {
        while (this.waiting.length) await this.#sendSome(AT_ONCE);
        this.away = "";
        this.pause = 500;
      } catch (error) {
        this.away = error.message || "The server does not answer.";
        this.timer = setTimeout(() => this.flush(), this.pause);
        this.pause = Math.min(this.pause * 1.5, LONGEST_WAIT_MS);
      }
    }

    async #sendSome(most) {
      const { reviewer } = this.waiting[0];
      const other = this.waiting.findIndex((one) => one.reviewer !== reviewer);
      const count = Math.min(most, other < 0 ? this.waiting.length : other);
      const some = this.waiting.slice(0, count);
      try {
        const reply = await this.client.send(reviewer, some.map((one) => one.event));
        this.#drop(count);
        this.away = "";
        this.stored(reply);
      } catch (error) {
        if (!(error instanceof window.Hilltop.Refused)) throw error;
        if (count > 1) return this.#sendSome(1);
        this.refused.push({ ...some[0], reason: error.message });
        this.#drop(1);
      }
      this.changed();
    }

    #drop(count) {
      this.waiting.splice(0, count);
      this.#keep();
    }

    // Each tab has its own entry, so that two tabs never write over each other.
    #keep() {
      try {
        if (this.waiting.length) localStorage.setItem(this.key, JSON.stringify(this.waiting));
        else localStorage.removeItem(this.key);
      } catch { /* a full or forbidden storage: the answers still wait in memory */ }
    }

    // Take over what earlier pages left. If another tab lives, both send: same ids, stored once.
    #adopt() {
      const found = [];
      try {
        for (const key of Object.keys(localStorage).filter((one) => one.startsWith(this.prefix))) {
          found.push(...JSON.parse(localStorage.getItem(key)));
          localStorage.removeItem(key);
        }
      } catch { /* unreadable entries cannot be sent */ }
      return found;
    }
  }

  Object.assign(window.Hilltop, { Queue, freshId });
})();
