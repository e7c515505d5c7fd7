/**
 * The same text in memory of its own. One that was cut out of a request keeps all of the request in memory as long as it
 * is kept itself. Expects well-formed text, as every action's is.
 */
export function ownText(text: string): string {
  return Buffer.from(text).toString();
}
