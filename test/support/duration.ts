const minRounds = 3;
/** Later rounds are for a process that collected garbage or compiled in each of the first ones. */
const maxRounds = 15;
/** Less CPU time than this says nothing about growth. */
const floorMs = 1;

/**
 * Returns how many times as much CPU time `work` costs on a fourfold input: about 4 where it is linear, 16 where it is
 * quadratic; `maxGrowth` lies between. CPU time of this process, the least of some rounds, so that neither other processes
 * nor this one's collector count. Choose `size` so that `work` collects garbage on the smaller input as
 * well, where it does on the larger: some tens of milliseconds.
 */
export async function growthOf<Input>(
  prepare: (size: number) => Input,
  work: (input: Input) => unknown,
  size: number,
): Promise<number> {
  const inputs = [prepare(size), prepare(4 * size)] as const;
  const least = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] as [number, number];
  const growth = (): number => least[1] / Math.max(least[0], floorMs);
  for (let round = 0; round < minRounds || (round < maxRounds && growth() >= maxGrowth); round += 1) {
    for (const which of [0, 1] as const) {
      least[which] = Math.min(least[which], await cpuMsOf(() => work(inputs[which])));
    }
  }
  return growth();
}

/** Growth of `growthOf` that no linear work reaches, and all quadratic work exceeds. */
export const maxGrowth = 12;

async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = cpuMs();
  await work();
  return cpuMs() - before;
}

/** A clock of the CPU time that this process has spent, in milliseconds. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
