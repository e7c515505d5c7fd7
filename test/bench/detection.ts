import { detectionReference } from "../support/detection/table.ts";

// What the plugins find and what they miss, on the texts of this repository.
process.stdout.write(await detectionReference());
process.exit();
