import { GatewayError } from "../action/error.ts";
import type { VerifyingKey } from "../action/signing-key.ts";
import { headerOf, maxToken, readToken } from "../ticket/claims.ts";
import { print } from "./print.ts";

/** `gateway tickets verify`. Reads the token from standard input, because it is a secret, and never prints it. */
export async function verifyTicket({ key }: { readonly key: VerifyingKey }): Promise<void> {
  const token = (await readStdin()).trim();
  const find = (header: string): { key: VerifyingKey; owner: null } | undefined =>
    header === headerOf(key.id) ? { key, owner: null } : undefined;
  const read = readToken(token, find, key);
  if (read === undefined) throw new GatewayError("INVALID_PARAMS", "expected a token signed by this key");
  print(JSON.stringify({ ...read.claims, nonce: undefined }));
}

async function readStdin(): Promise<string> {
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > maxToken + 2) break;
  }
  return text;
}
