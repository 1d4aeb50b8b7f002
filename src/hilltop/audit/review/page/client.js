"use strict";
// Talks to the review server. The page without a server has file_client.js in its place.
window.Hilltop = window.Hilltop || {};

(() => {
  const WAIT_MS = 15000;
  const LONG_MS = 300000;

  // The server did not answer, or cannot at the moment: worth trying again.
  class Away extends Error {}
  // The server said no, and why: trying again will not help.
  class Refused extends Error {}
  // Another browser answers under this name.
  class Taken extends Away {}

  async function ask(path, options = {}, read = (response) => response.json()) {
    let response;
    try {
      response = await fetch(path, {
        ...options, credentials: "same-origin", signal: AbortSignal.timeout(options.wait ?? WAIT_MS),
      });
    } catch {
      throw new Away("The server does not answer.");
    }
    let content = null;
    try {
      content = await (response.ok ? read(response) : response.json());
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

  // Ask with what is given; what is null or empty is left out.
  function get(path, asked, ...further) {
    const given = Object.entries(asked).filter(([, value]) => value !== null && value !== "");
    return ask(`api/${path}?${new URLSearchParams(given)}`, ...further);
  }

  const post = (path, content, options = {}) => ask(`api/${path}`, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content), ...options,
  });

  Object.assign(window.Hilltop, { Away, Refused, Taken });
  window.Hilltop.client = {
    views: ["ranked", "random", "disputed"],
    team: true,
    start: (reviewer) => get("start", { reviewer }),
    pairs: ({ number, search, ...asked }) => get("pairs", { class: number, ...search, ...asked }),
    image: ({ search, ...asked }) => get("picture", { ...search, ...asked }),
    disputes: (asked) => get("disputes", asked),
    send: (reviewer, events) => post("events", { reviewer, events }),
    // Whose a name is, and the way from one device to another.
    nameState: (reviewer) => get("name", { reviewer }),
    nameWish: (reviewer, wish) => post("name", { reviewer, wish }),
    people: (reviewer) => get("team", { reviewer }),
    assign: (reviewer, plan) => post("assign", { reviewer, ...plan }),
    exported: (what) => get("export", { what }, { wait: LONG_MS }, (response) => response.blob()),
    take: (reviewer, name, text, force) => post("import", { reviewer, name, text, force }, { wait: LONG_MS }),
    picture: (row, size) => `image/${row}?size=${size}`,
    download: null,
  };
})();
