import { withoutBrackets } from "../../action/parsed-url.ts";
import { isLoopback } from "../../config/repetition.ts";
import { type DoctorCheck, fail, ok, warn } from "./finding.ts";
import { checkHost } from "./peer.ts";

/** Checks that people can sign in to the console, and that nobody on the network reads along. */
export const checkSignIn: DoctorCheck = async ({ config }) => {
  const { listen, console } = config;
  const { publicUrl, oidc } = console;
  if (oidc !== null) return [await checkHost("console.oidc.issuer", oidc.issuer, config, fail)];
  if (publicUrl !== null) {
    const { protocol, hostname } = new URL(publicUrl);
    if (protocol === "https:" || isLoopback(withoutBrackets(hostname))) {
      return [ok(`people reach it at \`${publicUrl}\`, behind a proxy that adds their keys`)];
    }
    const text = `people reach it at \`${publicUrl}\` in plain HTTP: a session read on the network can review`;
    return [warn(text, "end TLS in front of it, as core/cli/deploy shows, and name the https: URL")];
  }
  if (isLoopback(listen.adminHost)) return [ok("`gateway console` opens it in a browser of this machine")];
  const text = `others reach \`${listen.adminHost}\`, and nobody can sign in there but by \`gateway console\` on this machine`;
  return [warn(text, "set `console.public_url`, and `console.oidc` or a proxy that adds people's keys")];
};
