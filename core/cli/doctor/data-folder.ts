import { stat } from "node:fs/promises";
import { examineChainEnds } from "./chain-end.ts";
import { type Examine, type Finding, fail, ok, type Patient } from "./finding.ts";
import { examineHead } from "./running-gateway.ts";

/** Who uses the data folder, and whether its evidence ends as it should. A gateway that runs on it is asked. */
export const examineData: Examine = async (patient) => {
  const { dataDir, state } = patient.config;
  if (!state.enabled) return [ok("none is used")];
  const found = await stat(dataDir).catch((cause: NodeJS.ErrnoException) => cause.code);
  if (found === "ENOENT") return [ok(`\`${dataDir}\` is made at the first start`)];
  if (typeof found !== "object")
    return [fail(`\`${dataDir}\` cannot be opened: ${found}`, "give it to the user who runs the gateway")];
  if (!found.isDirectory()) {
    return [fail(`\`${dataDir}\` is no folder`, "move it away, or choose another `data_dir`")];
  }
  if (patient.holder === undefined) {
    return [ok("evidence was not read: this system does not tell whether a gateway runs on it")];
  }
  return patient.holder === null ? examineAtRest(dataDir) : examineRunning(patient, patient.holder);
};

async function examineAtRest(dataDir: string): Promise<readonly Finding[]> {
  const isNew = (await stat(`${dataDir}/state`).catch(() => undefined)) === undefined;
  if (isNew) return [ok("new: it holds no evidence yet")];
  const found = await examineChainEnds(dataDir);
  return found ?? [ok(`too much to be read here; \`gateway evidence verify --data ${dataDir}\` reads it whole`)];
}

async function examineRunning(
  { admin, env }: Patient,
  { pid, name }: NonNullable<Patient["holder"]>,
): Promise<readonly Finding[]> {
  const running = ok(`held by \`${name}\`, pid ${pid}`);
  if ((env.GATEWAY_API_KEY ?? "") === "") {
    return [running, ok("evidence was not read: set GATEWAY_API_KEY, and the gateway is asked")];
  }
  return [running, await examineHead(admin)];
}
