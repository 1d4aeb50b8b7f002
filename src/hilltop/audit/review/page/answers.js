"use strict";
// How an answer travels: from a key to the tiles, into the queue, and back again by undo.
window.Hilltop = window.Hilltop || {};

(() => {
  const { WORDS, freshId, plural, visible } = window.Hilltop;
  const modeOf = ({ view, page }) => (view === "random" ? "random" : page?.may_rule ? "ruling" : "ranked");
  // Where answers differ, the pictures are of many classes.
  const classOf = (page, pair) => pair.class ?? page.class.name;

  class Answering {
    // `page` holds what is shown (state, grid, whole, zoom, classes, reviewer) and what the page can
    // do: send(events), open, openImage, turn, showZoom; say(text) is heard, tell(text) seen as well.
    constructor(page) {
      this.page = page;
    }

    give(word) {
      const { state, grid, whole, say } = this.page;
      if (whole.isOpen) return whole.answer(word);
      const targets = grid.targets();
      if (!targets.length || !state.page) return;
      // The key was meant for the next page, and must not change the last answer of this one.
      if (state.turning) return say("The next page is not there yet.");
      if (this.#showUnseen()) return;
      const before = targets.map((place) => state.page.pairs[place].answer);
      const events = this.#events(targets.map((place) => {
        const pair = state.page.pairs[place];
        const named = pair.class === undefined ? {} : { by_name: true };
        return {
          class: classOf(state.page, pair), image: pair.image, row: pair.row, answer: word, mode: modeOf(state), ...named,
        };
      }));
      targets.forEach((place, order) => this.#show(place, word, events[order].id));
      const at = { chosen: state.number, view: state.view, start: state.page.start, targets, before };
      const images = events.map((event) => event.image);
      state.undoable.push({ action: events[0].action, class: events[0].class, images, at });
      say(`${targets.length > 1 ? plural(targets.length, "picture", "pictures") : visible(events[0].image)}: ${WORDS[word]}`);
      this.#advance(targets[targets.length - 1]);
      this.page.send(events);
    }

    // What was answered image by image; any class may be named there.
    ofImage({ image, row, place }, items, word) {
      const { state, say, send } = this.page;
      const events = this.#events(items.map((item) => (
        { class: item.class, image, row, answer: word, mode: "ranked", by_name: true })));
      const images = items.map(() => image);
      state.undoable.push({ action: events[0].action, class: items[0].class, images, at: { image: place } });
      say(`${items.map((item) => visible(item.class)).join(", ")}: ${WORDS[word]}`);
      send(events);
    }

    // What somebody writes about a pair; an empty text takes it back.
    comment({ class: name, image, row }, text) {
      this.page.send(this.#events([{ class: name, image, row, comment: text }]));
      this.page.say(text ? "The comment is kept." : "The comment is taken back.");
    }

    #show(place, answer, waiting) {
      const { state, grid, me } = this.page;
      const pair = state.page.pairs[place];
      Object.assign(pair, { answer, waiting });
      if (state.page.may_rule) pair.ruling = answer && { reviewer: me(), answer };
      grid.update(place);
    }

    // One action: what is answered at once is taken back at once.
    #events(pairs) {
      const action = freshId();
      const time = new Date().toISOString();
      return pairs.map((pair, order) => ({ id: `${action}_${order}`, action, time, ...pair }));
    }

    // Nobody answers for a selected picture that was not on the screen: it is shown first.
    #showUnseen() {
      const { grid, tell } = this.page;
      const unseen = grid.unseen();
      if (!unseen.length) return false;
      grid.scrollTo(unseen[0]);
      tell(`${plural(unseen.length, "selected picture was", "selected pictures were")} not on the screen yet.`
        + " Look, then answer again.");
      return true;
    }

    // On to the next open picture; a page turns when none is left, also of those that were passed over.
    #advance(place) {
      const { state, grid, zoom } = this.page;
      grid.clear();
      const behind = grid.nextOpen(place);
      const next = behind >= 0 ? behind : grid.nextOpen(-1);
      if (next >= 0) grid.focus(next);
      else if ((state.page.end ?? state.page.start + state.page.pairs.length) < state.page.total) {
        state.turning = true;
        this.page.turn(1);
      } else if (place + 1 < grid.tiles.length) grid.focus(place + 1);
      else this.page.tell(state.view === "disputed" ? "That was the last one." : "That was the last picture of this class.");
      grid.clear();
      if (zoom.isOpen) this.page.showZoom();
    }

    undo() {
      const { state, grid, zoom, tell } = this.page;
      const last = state.undoable.pop();
      if (!last) return tell("There is nothing to undo.");
      const event = { id: freshId(), action: last.action, undo: true, time: new Date().toISOString() };
      tell(`Taken back: ${last.images.length > 1 ? plural(last.images.length, "answer", "answers")
        : `“${visible(last.class)}” in ${visible(last.images[0])}`}`);
      const sent = this.page.send([event]);
      if (!this.#isHere(last.at)) return sent.then(() => this.#returnTo(last));
      last.at.targets.forEach((place, order) => this.#show(place, last.at.before[order], false));
      grid.clear();
      grid.focus(last.at.targets[0]);
      if (zoom.isOpen) this.page.showZoom();
    }

    #isHere(at) {
      const { state } = this.page;
      return at?.targets && state.page && at.chosen === state.number && at.view === state.view
        && at.start === state.page.start;
    }

    // Show the page on which something was taken back.
    #returnTo({ at, class: name, images }) {
      const { state, classes, whole, open, openImage } = this.page;
      if (at?.image !== undefined) return openImage(at.image);
      if (at) return open(at.chosen, at.view, { start: at.start, place: at.targets[0] });
      const chosen = classes.classes.find((one) => one.name === name);
      if (whole.isOpen) return openImage(whole.page.place);
      const place = state.page.pairs.findIndex((pair) => pair.image === images[0]);
      const same = chosen?.number === state.number && place >= 0;
      return chosen && open(chosen.number, state.view, same ? { start: state.page.start, place } : {});
    }
  }

  Object.assign(window.Hilltop, { Answering, classOf, modeOf });
})();
