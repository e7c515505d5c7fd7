import { statSync } from "node:fs";
import { tmpdir } from "node:os";
import { repositoryRoot } from "../check/source-tree.ts";

const deviceOf = (folder: string): number => statSync(folder).dev;

/** A folder that can be written to, on another device than the folders that tests make. */
export const otherDisk: string = deviceOf("/dev/shm") === deviceOf(tmpdir()) ? `${repositoryRoot}/dist` : "/dev/shm";
