const forOwner = 0o077;

/** The mask that the process had before it opened state; undefined until then, and where it was this one already. */
let inherited: number | undefined;

/**
 * Makes every file and folder that this process creates from now on one that only its owner may open, also those that
 * LevelDB writes in threads of its own. State holds keys, approvals and evidence.
 */
export function keepFilesPrivate(): void {
  const before = process.umask(forOwner);
  if (before !== forOwner) inherited = before;
}

/**
 * Starts another program with the mask that this process was started with: what it writes is not the gateway's. `start` must
 * start it before it returns. What LevelDB creates in that moment lies in a folder of mode 0700.
 */
export function withInheritedMask<T>(start: () => T): T {
  if (inherited === undefined) return start();
  process.umask(inherited);
  try {
    return start();
  } finally {
    process.umask(forOwner);
  }
}
