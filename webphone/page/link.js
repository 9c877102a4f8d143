"use strict";

// Links: to pair through a mailbox, to pair with a daemon directly, or an invitation to a relay.
const links = (() => {
  const maxLink = 8 * 1024;

  // web returns a URL's origin and path without credentials and the rest; "" where it is none.
  function web(address) {
    try {
      const url = new URL(address);
      if ((url.protocol === "https:" || url.protocol === "http:") && url.host) return (url.origin + url.pathname).replace(/\/+$/, "");
    } catch { /* none */ }
    return "";
  }

  const isLoopback = (address) => /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(address).hostname);

  // usable says whether a browser may call an address from a page served over https.
  const usable = (address) => address.startsWith("https://") || isLoopback(address);

  // parse reads a link, its fragment, or its JSON, and throws an error that says what is wrong.
  function parse(given, origin) {
    const wrong = "This is no pairing link. Scan the QR code of sealpush pair, or paste the whole link.";
    given = String(given).replace(/^\ufeff/, "").trim();
    if (given === "") throw new Error("Paste a pairing link first.");
    if (given.length > maxLink) throw new Error("This is too long for a pairing link.");
    let document = given;
    if (!given.startsWith("{")) {
      const fragment = given.includes("#") ? given.slice(given.indexOf("#") + 1) : given;
      if (!/^[A-Za-z0-9_-]+=*$/.test(fragment)) throw new Error(wrong);
      try {
        const raw = atob(fragment.replace(/=+$/, "").replace(/-/g, "+").replace(/_/g, "/"));
        document = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(raw, (c) => c.charCodeAt(0)));
      } catch {
        throw new Error(wrong);
      }
    }
    let link;
    try {
      link = JSON.parse(document);
    } catch {
      throw new Error(wrong);
    }
    if (link === null || typeof link !== "object" || Array.isArray(link)) throw new Error(wrong);
    if (link.v !== 1) throw new Error("This link is of another version than this page. Reload the page, or update what made the link.");
    for (const member of ["name", "url", "token", "mailbox", "key", "relay", "invitation"]) {
      if (link[member] !== undefined && typeof link[member] !== "string") throw new Error(wrong);
    }
    const name = text.oneLine(link.name).slice(0, 64);
    const relay = link.relay ? web(link.relay) && new URL(link.relay).origin : origin;
    if (!relay) throw new Error("The relay that this link names is no web address.");
    if (link.relay && !usable(relay)) throw new Error("The relay of this link must be reached over https.");
    const invitation = link.invitation && /^[\x21-\x7e]{1,512}$/.test(link.invitation) ? link.invitation : "";
    if (link.mailbox !== undefined || link.key !== undefined) {
      if (!/^[0-9a-f]{32}$/.test(link.mailbox ?? "") || !/^[A-Za-z0-9+/]{43}=$/.test(link.key ?? "")) throw new Error(wrong);
      return { kind: "mailbox", name: name || "a daemon", mailbox: link.mailbox, key: link.key, relay, invitation };
    }
    if (link.url !== undefined) {
      const url = web(link.url);
      if (!url) throw new Error("The daemon's address in this link is no web address.");
      if (/[^\x21-\x7e]/.test(link.token ?? "")) throw new Error(wrong);
      return { kind: "direct", name: name || new URL(url).host, url, token: link.token ?? "", relay, invitation };
    }
    if (invitation) return { kind: "invitation", name, relay, invitation };
    throw new Error(wrong);
  }

  return { parse, usable };
})();
