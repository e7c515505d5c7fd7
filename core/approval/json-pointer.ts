/** The RFC 6901 pointer to a member of what `pointer` leads to. */
export function memberPointer(pointer: string, name: string): string {
  return `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
