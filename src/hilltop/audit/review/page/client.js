"use strict";
// Talks to the review server. The page without a server has file_client.js in its place.
window.Hilltop = window.Hilltop || {};

(() => {
  const WAIT_MS = 15000;

  // The server did not answer, or cannot at the moment: worth trying again.
  class Away extends Error {}
  // The server said no, and why: trying again will not help.
  class Refused extends Error {}
  // Another browser answers under this name.
  class Taken extends Away {}

  async function ask(path, options = {}) {
    let response;
    try {
      response = await fetch(path, {
        ...options, credentials: "same-origin", signal: AbortSignal.timeout(WAIT_MS),
      });
    } catch {
      throw new Away("The server does not answer.");
    }
    let content = null;
    try {
      content = await response.json();
    } catch {
      throw new Away("The server gave no proper answer.");
    }
    if (response.ok) return content;
    if (response.status === 401) {
      throw new Away("The server has a new token: open the address that it printed.");
    }
    if (response.status === 409) throw new Taken(content.error);
    if (response.status >= 500) {
      throw new Away(content.error || "The server failed.");
    }
    throw new Refused(content.error || "The server refused.");
  }

  Object.assign(window.Hilltop, { Away, Refused, Taken });
  window.Hilltop.client = {
    views: ["ranked", "random", "disputed"],
    start: (reviewer) => ask(`api/start?${new URLSearchParams({ reviewer })}`),
    pairs: ({ number, view, start, count, reviewer }) => {
      const asked = new URLSearchParams({ class: number, view, count, reviewer });
      if (start !== null) asked.set("start", start);
      return ask(`api/pairs?${asked}`);
    },
    image: ({ place, reviewer }) => {
      const asked = new URLSearchParams({ reviewer });
      if (place !== null) asked.set("place", place);
      return ask(`api/picture?${asked}`);
    },
    send: (reviewer, events) => ask("api/events", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ reviewer, events }),
    }),
    picture: (row, size) => `image/${row}?size=${size}`,
    download: null,
  };
})();
