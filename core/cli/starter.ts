/** Packs of local mode: its demo server states no facts, and it starts in half the time of a new installation. */
export const localPacks = ["baseline", "session-watch"] as const;

/** The shipped packs, all of them, which a new installation enforces. */
export const starterPacks = [...localPacks, "egress", "git", "secrets", "shell", "sql", "tool-integrity"] as const;

/**
 * The shipped plugins that both load, in shadow mode: their findings are on record and shown to reviewers, and a wrong one
 * stops nobody. In phase `list` neither has anything to say.
 */
export const starterPlugins = [
  { name: "prompt-injection", mode: "shadow", phases: ["input", "output"] },
  { name: "secret-egress", mode: "shadow", phases: ["input", "output"] },
] as const;
