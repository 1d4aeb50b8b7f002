"use strict";
// The review page itself: what is loaded, what is shown, and what keys and buttons do.

(() => {
  const {
    Answering, Away, ClassList, CommentBox, Grid, PictureSearch, Queue, Reviewer, Taken, Team, Whole,
    Zoom, asked, classOf, client, modeOf, number, showEmpty, showPager, visible, withComment,
  } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const COUNT = 48;
  const RETRY_MS = 2000;
  // `turning`: behind the last answer of a page, until the next page is there.
  const state = { number: -1, view: "ranked", page: null, undoable: [], fault: "", turning: false };
  let queue = null;
  let loading = 0;

  const say = (text) => { byId("live").textContent = text; };
  const tell = (text) => { say(text); window.Hilltop.showTold(text); };
  const current = () => classes.get(state.number);
  const ofClass = (view) => (view === "image" || view === "disputed" ? "ranked" : view);
  const grid = new Grid(byId("grid"), {
    picture: client.picture,
    opened: () => openZoom(),
    moved: () => showTargets(),
    clicked: () => { state.turning = false; },
  });
  const classes = new ClassList({ chosen: (chosen) => { showClasses(false); open(chosen, ofClass(state.view)); } });
  const zoom = new Zoom({
    picture: client.picture, leaving: () => grid.at, closed: (place) => grid.focus(place),
  });
  const whole = new Whole({ picture: client.picture, load: openImage, answered: (...given) => answers.ofImage(...given), say: tell });
  const reviewer = new Reviewer({ given: () => begin() });
  const answers = new Answering({
    state, grid, whole, zoom, classes, say, tell, open, openImage, turn, showZoom,
    me: () => reviewer.name,
    send: (events) => queue.add(reviewer.name, events),
  });
  const search = new PictureSearch({
    picture: client.picture,
    changed: () => {
      classes.narrow(search.asked.mine);
      open(state.number, search.like && ["image", "disputed"].includes(state.view) ? "ranked" : state.view);
    },
    closed: () => toPictures(),
  });
  const team = new Team({
    name: () => reviewer.name, assigned: begin, taken: begin, closed: () => toPictures(), tell,
  });
  const comments = new CommentBox({
    kept: (pair, text) => {
      answers.comment(pair, text);
      pair.about.comments = withComment(pair.comments, reviewer.name, text);
      if (whole.isOpen) whole.show(whole.page, whole.at);
      else grid.update(grid.at);
      if (zoom.isOpen) showZoom();
    },
    closed: () => { if (!zoom.isOpen) toPictures(); },
  });

  // ---- loading -------------------------------------------------------------------------------

  async function begin() {
    try {
      const started = await client.start(reviewer.name);
      reviewer.spelled(started.reviewer ?? reviewer.name);
      queue ??= new Queue(client, started.audit, { changed: showQueue, stored });
      state.undoable = started.undoable;
      client.views = started.views || client.views;
      classes.describe(started.summary);
      classes.show(started.classes);
      team.names = started.names || [];
      whole.offer(team.names);
      search.offer(started.columns ?? null);
      search.share(started.part);
      classes.narrow(search.asked.mine);
      state.alike = started.alike;
      byId("like-this").hidden = !started.alike;
      byId("people").hidden = !client.team;
      showDisputed(started.disputes);
      document.title = `Review of ${started.labels}`;
      showQueue();
      queue.flush();
      const { name, view } = wanted();
      const first = started.classes.find((one) => one.name === name) || classes.first;
      if (first) await open(first.number, view);
      else showEmpty("There are no candidates: no label seems to be missing.");
    } catch (error) {
      if (error instanceof Taken) reviewer.ask(error.message, Boolean(client.nameWish));
      else later(error, begin);
    }
  }

  // Show a page; without a start the one with the first pair that is still open.
  async function open(chosen, view, { start = null, place = null } = {}) {
    if (view === "image") return openImage(start);
    const ticket = ++loading;
    try {
      const wanted = { start, count: COUNT, reviewer: reviewer.name };
      if (view === "disputed") await queue.flush();
      const page = await (view === "disputed" ? client.disputes(wanted)
        : client.pairs({ number: chosen, view, search: search.asked, ...wanted }));
      if (ticket !== loading) return;
      Object.assign(state, { number: chosen, view, page, fault: "", turning: false });
      showPage(place);
    } catch (error) {
      if (ticket === loading) later(error, () => open(chosen, view, { start, place }));
    }
  }

  // Show one image with all its classes; without a place the first one that is still open.
  async function openImage(place = null) {
    const ticket = ++loading;
    try {
      await queue.flush();
      const { like, ...asked } = search.asked;
      const page = await client.image({ place, reviewer: reviewer.name, search: asked });
      if (ticket !== loading) return;
      Object.assign(state, { number: classes.current, view: "image", page: null, fault: "", turning: false });
      showView("image");
      whole.show(page);
      window.Hilltop.showImageHead(page, classes.nothing);
      remember();
    } catch (error) {
      if (ticket === loading) later(error, () => openImage(place));
    }
  }

  function later(error, again) {
    state.fault = error instanceof Away ? `${error.message} Trying again.` : error.message;
    if (queue) showQueue();
    else window.Hilltop.showQueue({ waiting: [], refused: [], away: "" }, state.fault, { retry: again });
    const ticket = loading;
    if (error instanceof Away) setTimeout(() => ticket === loading && again(), RETRY_MS);
  }

  function showPage(place) {
    const { page, view } = state;
    page.pairs.forEach((pair) => {
      const waiting = queue.answer(reviewer.name, classOf(page, pair), pair.image, modeOf(state));
      if (waiting !== undefined) Object.assign(pair, { answer: waiting, waiting: true });
    });
    byId("purpose").parentElement.hidden = client.views.length < 2 || view === "wrong";
    if (view === "disputed") showDisputed(page.open);
    else showClass(page);
    showView(view);
    showPager(page, search.isOn);
    window.Hilltop.showExamples(page, client.picture);
    showSummary();
    remember();
    byId("scroll").scrollTop = byId("main").scrollTop = 0;
    if (document.querySelector("dialog[open]:not(#zoom)")) return;
    const open_ = place ?? Math.max(0, grid.nextOpen(-1));
    grid.focus(open_, { scroll: open_ > 0 });
    if (zoom.isOpen) showZoom();
  }

  function showClass(page) {
    classes.update(page.class);
    classes.choose(page.class.number);
    const name = visible(page.class.name);
    const [before, behind] = asked(state.view);
    byId("question").replaceChildren(before, window.Hilltop.make("b", "", name), behind);
    byId("picked").textContent = name;
  }

  // How many pairs people disagree on, of all classes.
  function showDisputed(count = 0) {
    byId("disputed-count").textContent = count ? number(count) : "";
    if (state.view !== "disputed") return;
    byId("question").replaceChildren("Who is right?");
    byId("picked").textContent = "Classes";
    if (state.page) state.page.open = count;
  }

  function showView(view) {
    window.Hilltop.showViews(client.views, view);
    classes.ask(view === "wrong");
    grid.show(view === "image" ? [] : state.page.pairs, view === "wrong" ? " wrong" : "");
  }

  function showSummary() {
    if (state.view === "disputed") return window.Hilltop.showDisputedHead(state.page);
    window.Hilltop.showFigures(current(), state.view);
    window.Hilltop.showHint(current(), state.view, classes.neighbour(1, true));
  }

  function showQueue() {
    const forget = () => { queue.refused = []; showQueue(); open(state.number, state.view, whole.isOpen ? { start: whole.page.place } : {}); };
    window.Hilltop.showQueue(queue, state.fault, { retry: () => queue.flush(), forget });
    state.page?.pairs.forEach((pair, place) => {
      if (pair.waiting && !queue.has(pair.waiting)) {
        const still = queue.answer(reviewer.name, classOf(state.page, pair), pair.image, modeOf(state));
        pair.waiting = still !== undefined;
        grid.update(place);
      }
    });
  }

  function stored(reply) {
    reply.classes.forEach((summary) => classes.update(summary));
    showDisputed(reply.disputes);
    if (state.view === "disputed") return showSummary();
    reply.others.forEach(({ class: name, image, others, comments: written }) => {
      const place = state.page?.class.name === name ? state.page.pairs.findIndex((one) => one.image === image) : -1;
      if (place < 0) return;
      Object.assign(state.page.pairs[place], { others, comments: written });
      grid.update(place);
    });
    if (state.page && reply.classes.some((one) => one.number === state.number)) showSummary();
  }

  function remember() {
    const hash = new URLSearchParams({ class: current()?.name ?? "", view: state.view });
    // Also takes the token out of the address, so that it is not copied along.
    history.replaceState(null, "", `${location.pathname}#${hash}`);
  }

  function wanted() {
    const hash = new URLSearchParams(location.hash.slice(1));
    const view = hash.get("view");
    return { name: hash.get("class"), view: client.views.includes(view) ? view : "ranked" };
  }

  // ---- what keys and buttons do --------------------------------------------------------------

  function turn(step) {
    if (whole.isOpen) return whole.turn(step);
    const start = state.page.start + step * COUNT;
    if (start >= 0 && start < state.page.total) open(state.number, state.view, { start });
  }

  function move(key, extend) {
    state.turning = false;
    const moved = grid.move(key, extend);
    if (!moved && key === "ArrowRight") turn(1);
    if (!moved && key === "ArrowLeft") turn(-1);
    if (zoom.isOpen) showZoom();
  }

  function step(by) {
    const next = classes.neighbour(by);
    if (next) open(next.number, ofClass(state.view));
  }

  function zoomed() {
    const chance = state.view === "wrong" ? "Probability that it is wrong" : "Probability";
    const pair = state.page.pairs[grid.at];
    return [pair, asked(state.view).join(visible(classOf(state.page, pair))), chance];
  }

  // The pair with the focus is what a comment is about.
  function comment() {
    const { row, image } = whole.isOpen ? whole.page : state.page?.pairs[grid.at] ?? {};
    const about = whole.isOpen ? whole.page.items[whole.at] : state.page?.pairs[grid.at];
    if (!about) return;
    const name = whole.isOpen ? about.class : classOf(state.page, about);
    comments.open({ class: name, image, row, comments: about.comments, about }, reviewer.name);
  }

  function like() {
    const pair = state.page?.pairs[grid.at];
    if (!pair || !state.alike) return;
    if (zoom.isOpen) zoom.close();
    if (pair.class !== undefined) state.number = team.names.indexOf(pair.class);
    search.alike(pair);
  }

  function toPictures() {
    if (document.querySelector("dialog[open]")) return;
    if (whole.isOpen) whole.focus(whole.at);
    else grid.focus(grid.at, { scroll: false });
  }

  function openZoom() {
    if (!grid.tiles.length) return;
    grid.clear();
    zoom.open(...zoomed());
  }

  function showZoom() {
    zoom.show(...zoomed());
  }

  function showTargets() {
    const count = grid.selection.size;
    byId("select").querySelector("b").textContent = count ? `${count} selected` : "Select";
    byId("select").setAttribute("aria-pressed", String(grid.selecting));
  }

  function showClasses(shown) {
    document.body.classList.toggle("choosing", shown);
    byId("show-classes").setAttribute("aria-expanded", String(shown));
    // On a narrow window the list covers the pictures.
    byId("main").inert = shown && getComputedStyle(byId("show-classes")).display !== "none";
    if (shown) classes.filter.focus();
    else if (whole.isOpen || document.activeElement === document.body) toPictures();
  }

  // ---- wiring --------------------------------------------------------------------------------

  const on = (id, act) => byId(id).addEventListener("click", act);
  const resize = window.Hilltop.listenToSize(byId("size"), byId("grid"));
  window.Hilltop.listenToKeys(grid, zoom, whole, {
    answer: (word) => answers.give(word), undo: () => answers.undo(), move, turn, step,
    zoom: () => (zoom.isOpen ? zoom.close() : openZoom()),
    find: () => showClasses(true),
    help: () => byId("keys").showModal(),
    invert: () => grid.invert(),
    split: () => grid.split(),
    resize,
    comment,
    like,
    search: () => byId("find").hidden || search.open(),
    people: () => client.team && team.open(),
    examples: () => byId("examples").classList.toggle("large"),
    close: () => { showClasses(false); if (!search.close()) grid.clear(); },
  });
  document.querySelectorAll("button[data-answer]").forEach((button) => {
    button.addEventListener("click", () => answers.give(button.dataset.answer));
  });
  byId("views").addEventListener("click", (event) => {
    const { view } = event.target.closest("button")?.dataset ?? {};
    if (view) open(state.number, view);
  });
  on("undo", () => answers.undo());
  on("select", () => { grid.selecting = !grid.selecting; grid.clear(); });
  on("zoom-button", openZoom);
  on("comment-button", comment);
  on("like-this", like);
  on("invert", () => grid.invert());
  byId("purpose").addEventListener("change", (event) => classes.order(event.target.value));
  on("previous", () => turn(-1));
  on("next", () => turn(1));
  on("examples", () => byId("examples").classList.toggle("large"));
  on("next-class", () => open(classes.neighbour(1, true).number, "ranked"));
  on("help", () => byId("keys").showModal());
  on("close-keys", () => byId("keys").close());
  on("skip", (event) => { event.preventDefault(); grid.focus(grid.at); });
  on("show-classes", () => showClasses(!document.body.classList.contains("choosing")));
  byId("filter").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { classes.findAll(); showClasses(false); grid.focus(grid.at); }
  });
  byId("keys").addEventListener("close", () => toPictures());
  window.addEventListener("beforeunload", (event) => {
    if (queue?.waiting.length || client.unsaved?.()) event.preventDefault();
  });
  if (client.download) {
    byId("download").hidden = false;
    on("download", () => { client.download(reviewer.name); showQueue(); });
  }
  if (reviewer.name) begin();
  else reviewer.ask();
})();
