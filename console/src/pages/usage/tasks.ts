// The tasks behind a part of the usage, as the list of tasks is asked for them.

interface Search {
  model?: string;
  key?: string;
}

/** The list of the tasks that were created from the first day until the last one, days of UTC. */
export function tasksOf({ model, key }: Search, first: string, last: string, also: Search = {}) {
  return {
    ...(model && { model }),
    ...(key && { key }),
    ...also,
    // After the last moment before the day: the list leaves out what was created at the moment that is named.
    created_after: `${shifted(first, -1)}T23:59:59.999999Z`,
    created_before: `${shifted(last, 1)}T00:00:00Z`,
  };
}

/** The date so many days later. */
export function shifted(date: string, days: number): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}
