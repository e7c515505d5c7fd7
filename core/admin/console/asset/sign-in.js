import { read, useToken } from "./api.js";
import { faint, link, list, make } from "./element.js";
import { clockTime, visible } from "./text.js";

/** Reads who is signed in, and takes the token that changes carry. */
export async function readSession() {
  const session = await read("/console/session");
  useToken(session.csrf);
  return session;
}

/** A link to the sign-in at the provider, which leads back to what the address of this page names. */
function signInLink(path, text) {
  const element = link(path, "strong", text);
  element.addEventListener("click", () => {
    const place = location.hash.replace(/^#\/?/, "");
    element.href = place === "" ? path : `${path}?to=${encodeURIComponent(place)}`;
  });
  return element;
}

/** What stands where nobody is signed in: why there is no more, and the ways in. */
export function waysIn({ notice, sign_in: signIn = {} }) {
  const ways = [
    signIn.oidc && make("li", "", signInLink(signIn.oidc, "Sign in with your organization")),
    make(
      "li",
      "",
      "On the gateway's own machine, run ",
      make("code", "", "gateway console"),
      " and open the link that it prints.",
    ),
    make(
      "li",
      "",
      "Elsewhere, let a reverse proxy that has authenticated you add your key as ",
      make("code", "", "X-API-Key"),
      ".",
    ),
  ].filter(Boolean);
  return make(
    "section",
    "card ways",
    make("p", "", visible(notice)),
    list(ways, ""),
    faint("This page neither asks for a key nor keeps one."),
  );
}

/** The next step of somebody whose sign-in is too old for changes, by the way in which they came. */
function nextStep(by, signIn) {
  if (by === "link") return ["run ", make("code", "", "gateway console"), " again and open its link."];
  if (by === "oidc") return [signInLink(signIn?.oidc ?? "/console/sign-in", "sign in again"), "."];
  return ["load this page anew."];
}

/** Says that a sign-in is too old for changes, and how to go on; null where it is recent. */
export function staleNotice({ signed_in_at: at, recent_until: until, by, sign_in: signIn }, isRefused) {
  if (!isRefused && Date.parse(until) > Date.now()) return null;
  return [
    `You signed in at ${clockTime(at)}: you may read, but changes need a more recent sign-in. To go on, `,
    nextStep(by, signIn),
  ];
}
