// The models that the patterns of a key match now.
import { words } from '../../words';
import { linesOf, matches } from './settings';
import css from './keys.module.css';

const w = words.keys;

export function ModelMatches({ patterns, models }: { patterns: string; models: readonly string[] | undefined }) {
  if (!models) return null;
  const list = linesOf(patterns);
  const matched = list.length ? models.filter((id) => list.some((pattern) => matches(pattern, id))) : models;
  const idle = list.filter((pattern) => !models.some((id) => matches(pattern, id)));
  return (
    <div className={css.matches}>
      <p className="hint" role="status">
        <span>{list.length ? w.matchesNow(matched.length, models.length) : w.matchesAll(models.length)}</span>
        {idle.length > 0 && <span className={`${css.idle} foreign`}> {w.matchesNothing(idle.slice(0, 5).join(', '))}</span>}
      </p>
      {matched.length > 0 && (
        <details>
          <summary>{w.whichModels}</summary>
          <ul className="mono">
            {matched.map((id) => (
              <li key={id} className="foreign">
                {id}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}
