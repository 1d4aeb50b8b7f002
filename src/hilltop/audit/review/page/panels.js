"use strict";
// What stands around the grid: the list of classes, figures, hint and notices.
window.Hilltop = window.Hilltop || {};

(() => {
  const { make, percent, visible } = window.Hilltop;
  const byId = (id) => document.getElementById(id);
  const number = (value) => Math.round(value).toLocaleString("en-GB");
  const about = (value) => (value < 1 ? "under 1" : number(value));

  class ClassList {
    constructor({ chosen }) {
      this.list = byId("class-list");
      this.filter = byId("filter");
      this.classes = [];
      this.buttons = [];
      this.places = new Map();
      this.current = -1;
      this.purpose = "labels";
      this.filter.addEventListener("input", () => this.#filter());
      this.filter.addEventListener("keydown", (event) => {
        const first = this.buttons.find((button) => !button.parentElement.hidden);
        if (event.key === "Enter" && first) first.click();
        if (event.key === "ArrowDown" && first) { event.preventDefault(); first.focus(); }
      });
      this.list.addEventListener("keydown", (event) => this.#walk(event));
      this.list.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button) chosen(Number(button.dataset.number));
      });
    }

    // For labels, the classes with the most missing ones to be found come first; for the model,
    // those of which an answer teaches it most.
    order(purpose) {
      this.purpose = purpose;
      this.show(this.classes);
      this.choose(this.current);
    }

    show(classes) {
      const key = this.purpose === "model" ? "worth" : "expected";
      this.classes = [...classes].sort((a, b) => b[key] - a[key] || a.number - b.number);
      this.places = new Map(this.classes.map((one, place) => [one.number, place]));
      this.buttons = this.classes.map((one) => {
        const button = make("button");
        button.type = "button";
        button.tabIndex = -1; // one stop for the whole list; arrows walk in it
        button.dataset.number = one.number;
        const bar = make("span", "bar");
        bar.append(make("i"));
        button.append(make("span", "class-name", visible(one.name)), make("span", "count"), bar);
        return button;
      });
      this.list.replaceChildren(...this.buttons.map((button) => {
        const item = make("li");
        item.append(button);
        return item;
      }));
      this.classes.forEach((one) => this.#write(one));
      this.#totals();
      this.#filter();
    }

    update(summary) {
      if (!this.places.has(summary.number)) return;
      this.classes[this.places.get(summary.number)] = summary;
      this.#write(summary);
      this.#totals();
    }

    #write(summary) {
      const button = this.buttons[this.places.get(summary.number)];
      const wanted = Math.max(summary.expected, summary.present, 1);
      button.querySelector(".count").textContent = `${number(summary.present)} / ${about(summary.expected)}`;
      button.querySelector("i").style.width = `${(100 * Math.min(1, summary.present / wanted)).toFixed(1)}%`;
      button.classList.toggle("done", !summary.worthwhile);
      button.classList.toggle("disputed", summary.disputed > 0);
      const parts = [
        `${visible(summary.name)}: ${summary.present} found of about ${about(summary.expected)} expected`,
        `${summary.mine} answered by you`,
        summary.disputed ? plural(summary.disputed, "disagreement", "disagreements") : "",
        summary.worthwhile ? "" : "hardly worth more time",
      ];
      button.setAttribute("aria-label", parts.filter(Boolean).join(", "));
      button.title = parts.slice(1).filter(Boolean).join(", ");
    }

    choose(chosen) {
      this.current = chosen;
      this.buttons.forEach((button) => {
        button.removeAttribute("aria-current");
        button.tabIndex = -1;
      });
      const button = this.buttons[this.places.get(chosen)];
      if (!button) return;
      button.setAttribute("aria-current", "true");
      button.tabIndex = 0;
      button.scrollIntoView({ block: "nearest" });
    }

    // The class before or behind the current one; only worthwhile ones if asked for.
    neighbour(step, worthwhile = false) {
      let place = this.places.get(this.current) + step;
      while (worthwhile && this.classes[place] && !this.classes[place].worthwhile) place += step;
      return this.classes[place] || null;
    }

    get(chosen) {
      return this.classes[this.places.get(chosen)] || null;
    }

    // How often the reviewer agrees with pairs that are known and stand among the others.
    agree(agreement) {
      this.agreement = agreement ? `. You agree with ${agreement.agreed} of ${agreement.answered} known pairs`
        + ` (90%: ${percent(agreement.low)} to ${percent(agreement.high)})` : "";
      this.#totals();
    }

    #totals() {
      const sum = (key) => this.classes.reduce((total, one) => total + one[key], 0);
      byId("totals").textContent = `${number(sum("present"))} found of about ${about(sum("expected"))}`
        + ` expected, ${number(sum("mine"))} answered by you${this.agreement || ""}`;
    }

    #filter() {
      const wanted = this.filter.value.trim().toLowerCase();
      this.buttons.forEach((button, place) => {
        button.parentElement.hidden = !this.classes[place].name.toLowerCase().includes(wanted);
      });
      byId("none-found").hidden = this.buttons.some((button) => !button.parentElement.hidden);
    }

    #walk(event) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const shown = this.buttons.filter((button) => !button.parentElement.hidden);
      const next = shown[shown.indexOf(document.activeElement) + step];
      (next || (step < 0 ? this.filter : document.activeElement)).focus();
    }
  }

  function figure(caption, value, detail) {
    const block = make("div");
    const told = make("dd", "", value);
    if (detail) told.append(make("small", "", ` ${detail}`));
    block.append(make("dt", "", caption), told);
    return block;
  }

  function share(present, total) {
    return total ? percent(present / total) : "–";
  }

  function showFigures(summary, view) {
    const shown = [];
    const { ranked, recent, sample } = summary;
    if (view === "wrong") {
      const { labels, expected, right, struck } = summary.wrong;
      shown.push(figure("Struck", number(struck), `of about ${about(expected)} wrong`));
      shown.push(figure("Right", number(right)));
      shown.push(figure("Labels", number(labels)));
    } else if (view === "random") {
      shown.push(figure("Sample answered", number(sample.answers)));
      shown.push(figure("Label missing", share(sample.present, sample.answers),
        sample.answers ? `${sample.present} of ${sample.answers}` : ""));
      shown.push(figure("Missing in all", sample.answers
        ? number((summary.candidates * sample.present) / sample.answers) : "–",
      sample.answers ? `90%: ${number(sample.low)} to ${number(sample.high)}` : ""));
      shown.push(figure("Unlabelled", number(summary.candidates)));
    } else {
      const decided = ranked.present + ranked.absent;
      shown.push(figure("Found", number(summary.present), `of about ${about(summary.expected)}`));
      shown.push(figure("Precision so far", share(ranked.present, decided),
        decided ? `${ranked.present} of ${decided}` : ""));
      shown.push(figure(`Last ${recent.answers || 20}`, share(recent.present, recent.answers)));
      shown.push(figure("Disagreements", number(summary.disputed)));
    }
    byId("figures").replaceChildren(...shown);
  }

  // Say when a class is no longer worth the time, and offer the next one.
  function showHint(summary, view, next) {
    const hint = byId("hint");
    hint.hidden = summary.worthwhile || view !== "ranked";
    if (hint.hidden) return;
    const { present, answers, low, high } = summary.recent;
    const between = high === undefined ? "" : ` With 90% confidence it is ${percent(low)} to ${percent(high)}.`;
    hint.querySelector("p").textContent = `${present || "None"} of the last ${answers} answers found a`
      + ` missing label (${percent(present / answers)}).${between} You may stop here: this class is`
      + " hardly worth more of your time.";
    const button = byId("next-class");
    button.hidden = !next;
    if (next) button.textContent = `Next: ${visible(next.name)}`;
  }

  // What is asked, before and behind the name of the class.
  function asked(view) {
    return view === "wrong" ? ["Is the label “", "” right?"] : ["Is “", "” in the picture?"];
  }

  // How large pictures are; the browser keeps it.
  function listenToSize(slider, grid) {
    const show = (size) => grid.style.setProperty("--tile", `${size}rem`);
    slider.value = 11;
    try {
      const kept = localStorage.getItem("hilltop-size");
      if (kept) { slider.value = kept; show(slider.value); }
    } catch { /* the usual size then */ }
    slider.addEventListener("input", () => {
      show(slider.value);
      try { localStorage.setItem("hilltop-size", slider.value); } catch { /* lost when closed */ }
    });
  }

  // Labelled pictures of the class, to compare with.
  function showExamples({ class: summary, examples = [] }, picture) {
    const strip = byId("examples");
    strip.hidden = !examples.length;
    strip.setAttribute("aria-label", `Labelled examples of ${visible(summary.name)}: show them larger or smaller`);
    strip.replaceChildren(make("span", "", "Labelled"), ...examples.map(({ row, image }) => {
      const shown = make("img");
      Object.assign(shown, { alt: "", title: visible(image), src: picture(row, "small") });
      return shown;
    }));
  }

  // Which parts of the page belong to a view: a grid of pictures, or one picture with its classes.
  function showViews(offered, view) {
    byId("views").querySelectorAll("button").forEach((button) => {
      button.hidden = !offered.includes(button.dataset.view);
      button.setAttribute("aria-pressed", String(button.dataset.view === view));
      if (button.dataset.view === view) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    byId("views").hidden = offered.length < 2;
    document.body.classList.toggle("by-image", view === "image");
    byId("whole").hidden = view !== "image";
    if (view === "image") ["pager", "empty", "hint", "examples"].forEach((id) => { byId(id).hidden = true; });
  }

  function showImageHead({ place, total, items }) {
    byId("question").replaceChildren("What else is in this picture?");
    byId("picked").textContent = "Classes";
    const open = items.filter((item) => !item.label && !item.answer);
    const lacking = open.reduce((sum, item) => sum + (item.probability || 0), 0);
    byId("figures").replaceChildren(
      figure("Picture", number(place + 1), `of ${number(total)}, those that lack most first`),
      figure("Probably lacks", lacking.toFixed(1), lacking.toFixed(1) === "1.0" ? "label" : "labels"),
    );
  }

  function showPager({ start, total, pairs, view, end = start + pairs.length }) {
    byId("pager").hidden = start === 0 && total <= end;
    byId("where").textContent = `${number(start + 1)} to ${number(end)} of ${number(total)}`;
    byId("previous").disabled = start === 0;
    byId("next").disabled = end >= total;
    const none = view === "wrong" ? "This class has no labels." : view === "planned" ? "The plan asks for no picture of this class." : view === "disputed" ? "Reviewers do not disagree on any picture of this class."
      : "There are no candidates for this class.";
    showEmpty(pairs.length ? "" : none);
  }

  function showEmpty(text) {
    byId("empty").hidden = !text;
    byId("empty").textContent = text;
  }

  function plural(count, one, many) {
    return `${number(count)} ${count === 1 ? one : many}`;
  }

  // Answers that wait or were refused are always in sight.
  function showQueue(queue, pageFault, { retry, forget }) {
    const notice = byId("notice");
    const parts = [];
    const waiting = plural(queue.waiting.length, "answer waits", "answers wait");
    if (queue.waiting.length && queue.away) {
      parts.push(`${queue.away} ${waiting} in this browser and will be sent as soon as it is back.`);
    } else if (pageFault) parts.push(pageFault);
    if (queue.refused.length) {
      const names = queue.refused.map(({ event }) => (event.undo ? "an undo"
        : `${visible(event.class)} in ${visible(event.image)}: ${window.Hilltop.WORDS[event.answer]}`));
      const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
      parts.push(`Not saved: ${names.slice(0, 3).join("; ")}${more}. ${queue.refused[0].reason}`);
    }
    const text = parts.join(" ");
    notice.hidden = !text;
    if (notice.dataset.text !== text) {
      notice.dataset.text = text;
      notice.replaceChildren(make("p", "", text));
      const button = make("button", "plain", queue.refused.length ? "Dismiss" : "Try now");
      button.type = "button";
      button.addEventListener("click", queue.refused.length ? forget : retry);
      if (text) notice.append(button);
    }
    const saved = byId("saved");
    const unsaved = Boolean(window.Hilltop.client.unsaved?.());
    saved.textContent = queue.waiting.length ? (queue.away ? `${number(queue.waiting.length)} unsent` : "Saving")
      : queue.refused.length ? "Not all saved"
        : unsaved ? "Not in a file yet" : "Saved";
    saved.dataset.state = queue.away || queue.refused.length || unsaved ? "away" : "";
  }

  Object.assign(window.Hilltop, {
    ClassList, asked, showExamples, listenToSize, showEmpty, showFigures, showHint, showImageHead, showPager, showQueue, showViews,
    plural,
  });
})();
