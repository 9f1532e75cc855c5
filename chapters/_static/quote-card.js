// The card of a quoted number: opens on hover, on keyboard focus, or, to stay, on a click or tap.
(() => {
  "use strict";

  const root = document.documentElement.dataset.content_root ?? "./";
  const loaded = {}; // scenario -> promise of {basis, cards}
  let owner = null; // the button whose card is open
  let pinned = false; // opened by a click: it stays until it is dismissed
  let wanted = null; // the button whose card was asked for last
  let rested = null; // the button or card under the pointer
  let timer = 0;

  const element = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  const card = element(
    `<div id="quote-card" popover="manual" role="dialog" aria-labelledby="quote-card-key" tabindex="-1">
      <button type="button" class="close" aria-label="Close">×</button>
      <div class="content"></div>
    </div>`,
  );
  const quoteAt = (target) => target.closest?.("button.quote") ?? null;

  // A script, because a page that is opened from a disk may load no other data.
  window.addQuoteCards = (scenario, content) => (loaded[scenario].content = content);
  const load = (scenario) => {
    loaded[scenario] ??= new Promise((done) => {
      const script = document.createElement("script");
      script.src = `${root}cards/${scenario}.js`;
      script.onload = script.onerror = () => done(loaded[scenario].content);
      document.head.append(script);
    });
    return loaded[scenario];
  };

  const fill = (button, { basis, cards }) => {
    const content = card.querySelector(".content");
    content.innerHTML = cards[button.dataset.key];
    content.querySelector(".basis")?.insertAdjacentHTML("beforeend", basis);
    for (const link of content.querySelectorAll("a")) {
      link.href = root + link.getAttribute("href");
      const here = link.href === new URL(`#${button.id}`, location.href).href;
      if (here) link.setAttribute("aria-current", "location");
    }
    if (navigator.clipboard) {
      const copy = element(`<button type="button" class="copy">Copy</button>`);
      copy.onclick = async () => {
        await navigator.clipboard.writeText(content.querySelector(".command code").textContent);
        copy.textContent = "Copied";
      };
      content.querySelector(".command").append(copy);
    }
    card.scrollTop = 0;
  };

  const show = async (button, pin) => {
    clearTimeout(timer);
    wanted = button;
    const content = await load(button.dataset.key.split(".")[0]);
    if (wanted !== button || !content) return;
    if (owner !== button) {
      hide();
      wanted = owner = button;
      fill(button, content);
      card.showPopover({ source: button });
      button.setAttribute("aria-expanded", "true");
      // A sheet at the foot of a phone's screen must not cover the number that it tells of.
      const [number, sheet] = [button.getBoundingClientRect(), card.getBoundingClientRect()];
      const covered = sheet.left <= number.left && sheet.bottom >= number.bottom;
      if (covered && number.bottom > sheet.top) scrollBy(0, number.bottom - sheet.top + 24);
    }
    pinned ||= pin;
    // The controls of a card that was only looked at are no stops on the way through the page.
    for (const control of card.querySelectorAll("a, button, summary")) {
      control.tabIndex = pinned ? 0 : -1;
    }
    if (pin) card.focus({ preventScroll: true });
  };

  const hide = () => {
    clearTimeout(timer);
    wanted = null;
    if (!owner) return;
    const [button, inside] = [owner, card.contains(document.activeElement)];
    owner = null;
    pinned = false;
    button.setAttribute("aria-expanded", "false");
    card.hidePopover();
    if (inside) button.focus({ preventScroll: true });
  };

  document.addEventListener("pointerover", ({ pointerType, target }) => {
    const over = quoteAt(target) ?? (card.contains(target) ? card : null);
    if (pointerType !== "mouse" || over === rested) return;
    rested = over;
    clearTimeout(timer);
    if (pinned || over === card || (over && over === owner)) return;
    if (over) timer = setTimeout(show, 200, over, false);
    else timer = setTimeout(hide, 300);
  });

  document.addEventListener("pointerdown", ({ target }) => {
    if (owner && !card.contains(target) && !quoteAt(target)) hide();
  });

  document.addEventListener("click", ({ target }) => {
    const button = quoteAt(target);
    if (button && button === owner && pinned) hide();
    else if (button) show(button, true);
    else if (card.contains(target) && target.closest("a, .close")) {
      const link = target.closest("a");
      if (!link || link.pathname === location.pathname) hide();
    }
  });

  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") hide();
  });

  // On the keyup of Tab, not on focus: a card that closes gives the focus back, and must not reopen.
  document.addEventListener("keyup", ({ key, target }) => {
    if (key !== "Tab") return;
    clearTimeout(timer);
    const button = quoteAt(target);
    if (button && button !== owner) timer = setTimeout(show, 200, button, false);
  });

  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    const left = quoteAt(target) || card.contains(target);
    if (left && relatedTarget && relatedTarget !== owner && !card.contains(relatedTarget)) hide();
  });

  const help = element(
    `<span id="quote-card-help" hidden>Opens a card that says where this number comes from.</span>`,
  );
  document.body.append(card, help);
  for (const button of document.querySelectorAll("button.quote")) {
    button.setAttribute("aria-haspopup", "dialog");
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-describedby", help.id);
  }
})();
