"use strict";
// Takes the place of client.js in a page without a server: the pairs stand in the page itself, the
// answers stay in this browser until they are saved to a file, which goes back to the sender.
window.Hilltop = window.Hilltop || {};

(() => {
  const RECENT = 20;
  const WORTH = 0.1;
  const data = JSON.parse(document.getElementById("review-data").textContent);
  const prefix = `hilltop-answers:${data.audit}:${data.id}`;
  // Each tab writes an entry of its own and reads those of all, so that none is written over.
  const key = `${prefix}:${crypto.getRandomValues(new Uint32Array(2)).join("-")}`;
  const own = { events: [], saved: [] };
  let reviewing = "";

  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify(own));
    } catch { /* a forbidden storage: the answers last as long as the page is open */ }
  }

  function entries() {
    const found = [own];
    try {
      for (const one of Object.keys(localStorage)) {
        if (one === key || !(one === prefix || one.startsWith(`${prefix}:`))) continue;
        try { found.push(JSON.parse(localStorage.getItem(one))); } catch { /* not one of ours */ }
      }
    } catch { /* a forbidden storage */ }
    return found.filter((one) => Array.isArray(one?.events));
  }

  // What a reviewer did in any tab, in order, each event once.
  function eventsOf(reviewer) {
    const events = entries().flatMap((one) => one.events).filter((one) => one.reviewer === reviewer);
    const unique = [...new Map(events.map((event) => [event.id, event])).values()];
    return unique.sort((one, other) => (one.time < other.time ? -1 : one.time > other.time ? 1 : 0));
  }

  function unsaved(reviewer) {
    const saved = new Set(entries().flatMap((one) => one.saved || []));
    return eventsOf(reviewer).some((event) => !saved.has(event.id));
  }

  // The answers of a reviewer that were not taken back, the latest of each pair last.
  function answers(reviewer) {
    const mine = eventsOf(reviewer);
    const undone = new Set(mine.filter((event) => event.undo).map((event) => event.action));
    return mine.filter((event) => event.answer && !undone.has(event.action));
  }

  // What a reviewer wrote about a pair last.
  function written(reviewer, name, image) {
    const mine = eventsOf(reviewer).filter((event) => event.class === name && event.image === image && "comment" in event);
    const text = mine[mine.length - 1]?.comment;
    return text ? [{ reviewer, text }] : [];
  }

  function summary(one, reviewer) {
    const latest = new Map();
    answers(reviewer).filter((event) => event.class === one.name).forEach((event) => {
      latest.delete(event.image);
      latest.set(event.image, event.answer);
    });
    const words = [...latest.values()];
    const count = (word) => words.filter((answer) => answer === word).length;
    const recent = words.filter((answer) => answer !== "unsure").slice(-RECENT);
    const found = recent.filter((answer) => answer === "present").length;
    return {
      number: one.number, name: one.name, candidates: one.pairs.length,
      expected: Math.max(one.expected, count("present")), most: one.most ?? null,
      listed: one.pairs.reduce((all, pair) => all + pair.probability, 0),
      present: count("present"), absent: count("absent"), unsure: count("unsure"), disputed: 0,
      mine: words.length, ranked: { present: count("present"), absent: count("absent") },
      recent: { present: found, answers: recent.length },
      worthwhile: recent.length < RECENT || found / recent.length >= WORTH,
      sample: { present: 0, answers: 0, low: 0, high: 0 },
    };
  }

  function undoable(reviewer) {
    const actions = new Map();
    answers(reviewer).forEach((event) => {
      const one = actions.get(event.action) || { action: event.action, class: event.class, images: [] };
      one.images.push(event.image);
      actions.set(event.action, one);
    });
    return [...actions.values()];
  }

  function pairs({ number, start, count, reviewer }) {
    const one = data.classes.find((found) => found.number === number);
    const said = new Map(answers(reviewer).filter((event) => event.class === one.name)
      .map((event) => [event.image, event.answer]));
    const open = one.pairs.findIndex((pair) => !said.has(pair.image));
    const first = open < 0 ? one.pairs.length : open;
    const from = start ?? Math.floor(Math.min(first, one.pairs.length - 1) / count) * count;
    return {
      class: summary(one, reviewer), view: "ranked", start: from, total: one.pairs.length,
      pairs: one.pairs.slice(from, from + count).map((pair) => ({
        ...pair, picture: pair.row in data.pictures, answer: said.get(pair.image) || null,
        others: null, other_count: 0, comments: written(reviewer, one.name, pair.image),
      })),
    };
  }

  function download(reviewer) {
    const events = eventsOf(reviewer);
    const content = { kind: "hilltop answers", audit: data.audit, reviewer, events };
    const blob = new Blob([JSON.stringify(content, null, 1)], { type: "application/json" });
    window.Hilltop.saveAs(blob, `answers-${reviewer.replace(/[^A-Za-z0-9._-]+/g, "-")}.json`);
    own.saved.push(...events.map((event) => event.id));
    keep();
  }

  Object.assign(window.Hilltop, {
    Away: class Away extends Error {},
    Refused: class Refused extends Error {},
    Taken: class Taken extends Error {},
    client: {
      views: ["ranked"],
      start: async (reviewer) => {
        reviewing = reviewer;
        return {
          audit: `${data.audit}:${data.id}`, labels: data.labels, summary: data.summary, undoable: undoable(reviewer),
          classes: data.classes.map((one) => summary(one, reviewer)),
        };
      },
      pairs: async (asked) => pairs(asked),
      send: async (reviewer, events) => {
        own.events.push(...events.map((event) => ({ ...event, reviewer })));
        keep();
        return {
          stored: events.map((event) => event.id), others: [],
          classes: data.classes.map((one) => summary(one, reviewer)),
        };
      },
      picture: (row) => data.pictures[row],
      unsaved: () => unsaved(reviewing),
      download,
    },
  });
})();
