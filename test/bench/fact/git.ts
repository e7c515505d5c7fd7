export { judge } from "./shell.ts";

/** The corpus has command lines that run git. */
export const name = "git";
