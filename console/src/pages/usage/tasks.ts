// The list of the tasks that make up a part of the usage.

interface Search {
  model?: string;
  key?: string;
}

/** The search parameters for the tasks created from the first day to the last, which are days in UTC. */
export function tasksOf({ model, key }: Search, first: string, last: string, also: Search = {}) {
  return {
    ...(model && { model }),
    ...(key && { key }),
    ...also,
    // The list excludes tasks created at the given moment itself, so the range starts just before the first day.
    created_after: `${shifted(first, -1)}T23:59:59.999999Z`,
    created_before: `${shifted(last, 1)}T00:00:00Z`,
  };
}

/** The date a number of days later. */
export function shifted(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}
