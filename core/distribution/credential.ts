import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { isJsonObject, type Json } from "../action/json.ts";
import { parseStrictJson } from "../action/strict-json.ts";

/** A secret: never logged, sent to one registry and to the token service that it names. */
export interface RegistryCredential {
  readonly username: string;
  readonly password: string;
}

const maxConfig = 1_048_576;
const maxCredential = 4_096;
const bounds = { depth: 16, nodes: 16_384, stringLength: 65_536, reader: "tolerant" } as const;

/**
 * Finds the credential for a registry (`host[:port]`): GATEWAY_REGISTRY_USERNAME and GATEWAY_REGISTRY_PASSWORD, else the
 * entry that `docker login` wrote into `config.json` of DOCKER_CONFIG or `~/.docker`. Helpers that this file may name are
 * not called. Returns undefined where there is none.
 */
export async function findCredential(
  host: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<RegistryCredential | undefined> {
  const { GATEWAY_REGISTRY_USERNAME: username, GATEWAY_REGISTRY_PASSWORD: password } = env;
  if (username !== undefined && password !== undefined) return { username, password };
  const config = await readConfig(join(env.DOCKER_CONFIG || join(homedir(), ".docker"), "config.json"));
  const entries = isJsonObject(config) && isJsonObject(config.auths) ? config.auths : {};
  const entry = [host, `https://${host}`, `http://${host}`].map((name) => entries[name]).find(isJsonObject);
  return typeof entry?.auth === "string" ? readBasic(entry.auth) : undefined;
}

async function readConfig(path: string): Promise<Json> {
  try {
    const found = await stat(path);
    if (!found.isFile() || found.size > maxConfig) return null;
    return parseStrictJson(await readFile(path), bounds);
  } catch {
    // No file, or none that docker could read: as if nobody had logged in.
    return null;
  }
}

function readBasic(text: string): RegistryCredential | undefined {
  const pair = Buffer.from(text, "base64").toString("utf8");
  const colon = pair.indexOf(":");
  if (colon < 1 || pair.length > maxCredential) return undefined;
  return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

/** Returns the value of the header `authorization`. */
export function basicAuthorization({ username, password }: RegistryCredential): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}
