import { parsedUrl } from "../action/parsed-url.ts";
import { isLoopback } from "../config/repetition.ts";

/** An artifact in a registry. */
export interface ArtifactReference {
  /** As the user wrote it. */
  readonly text: string;
  /** The registry, with its scheme: `http` where its host is this machine, `https` elsewhere. */
  readonly origin: URL;
  readonly repository: string;
  /** A tag, or `sha256:<hex>` of a manifest. */
  readonly version: string;
  readonly isDigest: boolean;
}

export const artifactReferenceShape = "`oci://host[:port]/name[:tag]` or `oci://host[:port]/name@sha256:<hex>`";

const shape = /^oci:\/\/([^/]{1,261})\/(.{1,512})$/;
const component = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const tag = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const digest = /^sha256:[0-9a-f]{64}$/;
const maxRepository = 255;

/** An npm tarball. */
export interface TarballReference {
  /** As the user wrote it. */
  readonly text: string;
  /** The tarball: https, or http where its host is this machine. */
  readonly url: URL;
  /** `sha512-` and base64 of the tarball's SHA-512, as npm writes it. */
  readonly integrity: string;
}

export const tarballReferenceShape = "`https://host/name.tgz#sha512-<base64>`";

const tarballShape = /^(https?:\/\/[^#]{1,2000})#(sha512-[A-Za-z0-9+/]{86}==)$/;

/**
 * Reads the reference of a tarball: a URL without credentials and query, in its one spelling, with the integrity that npm
 * gives for it. Returns undefined for anything else.
 */
export function parseTarballReference(text: string): TarballReference | undefined {
  const [, address = "", integrity] = tarballShape.exec(text) ?? [];
  const url = parsedUrl(address);
  if (url === undefined || integrity === undefined || url.href !== address) return undefined;
  if (url.username !== "" || url.password !== "" || url.search !== "") return undefined;
  return url.protocol === "https:" || isOnThisMachine(url) ? { text, url, integrity } : undefined;
}

/** Reads a reference; the tag is `latest` where none is given. Returns undefined for anything else. */
export function parseReference(text: string): ArtifactReference | undefined {
  const [, host, rest] = shape.exec(text) ?? [];
  if (host === undefined || rest === undefined) return undefined;
  const origin = readRegistry(host);
  const at = rest.indexOf("@");
  const colon = rest.lastIndexOf(":");
  const end = at === -1 ? colon : at;
  const repository = end === -1 ? rest : rest.slice(0, end);
  const version = end === -1 ? "latest" : rest.slice(end + 1);
  const isDigest = at !== -1;
  const isNamed = repository.length <= maxRepository && repository.split("/").every((part) => component.test(part));
  if (origin === undefined || !isNamed || !(isDigest ? digest : tag).test(version)) return undefined;
  return { text, origin, repository, version, isDigest };
}

function readRegistry(host: string): URL | undefined {
  const url = parsedUrl(`https://${host}`);
  if (url === undefined || url.username !== "" || url.password !== "") return undefined;
  const base = isOnThisMachine(url) ? parsedUrl(`http://${host}`) : url;
  // A host with a second spelling is none.
  return base !== undefined && base.href === `${base.protocol}//${host}/` ? base : undefined;
}

/**
 * Returns whether a URL's host is this machine by its text: `localhost` or a loopback address. Names in which such an
 * address is written, such as `127.0.0.1.example`, lead anywhere.
 */
export function isOnThisMachine(url: URL): boolean {
  return isLoopback(url.hostname.replace(/^\[(.*)\]$/, "$1"));
}
