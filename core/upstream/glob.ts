/** Whether `text` matches `pattern`, in which `*` stands for any characters. Time is the product of their lengths at worst. */
export function matchesGlob(text: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    if (pattern[next] === "*") {
      star = next++;
      resume = at;
    } else if (pattern[next] === text[at]) {
      next++;
      at++;
    } else if (star !== -1) {
      next = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (pattern[next] === "*") next++;
  return next === pattern.length;
}
