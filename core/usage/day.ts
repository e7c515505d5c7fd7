/** `2026-11-22`, in UTC. */
export type Day = string;

const dayMs = 86_400_000;

export function dayOf(ms: number): Day {
  return new Date(ms).toISOString().slice(0, 10);
}

/** So many days later; earlier where `days` is negative. */
export function addDays(day: Day, days: number): Day {
  return dayOf(Date.parse(day) + days * dayMs);
}

export type PeriodUnit = "day" | "month";

/** The day itself, or its month: `2026-11`. */
export function periodOf(unit: PeriodUnit, day: Day): string {
  return unit === "day" ? day : day.slice(0, 7);
}

/** The first day behind the period that a day is in. */
export function nextPeriod(unit: PeriodUnit, day: Day): Day {
  return unit === "day" ? addDays(day, 1) : `${addDays(`${day.slice(0, 7)}-01`, 31).slice(0, 7)}-01`;
}
