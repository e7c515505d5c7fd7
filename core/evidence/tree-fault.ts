/** A stored tree has a hole: a tile or record is missing, or is not what it should be. */
export class TreeFault extends Error {}
