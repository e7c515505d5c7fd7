import { showTranscripts } from "./transcript-suite.ts";

showTranscripts("extension");
