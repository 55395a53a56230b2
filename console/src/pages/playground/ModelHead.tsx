// The head of the playground: the model, what it can do, and what it costs.
import { Link } from '@tanstack/react-router';
import { Amount, Badge } from '../../ui';
import { words } from '../../words';
import { useModelPage, usePriceRows, type ListedModel, type Target } from './catalog';
import { priceOf, type PriceSpan } from './prices';
import css from './playground.module.css';

const w = words.playground;

export function ModelHead({ target }: { target: Target }) {
  const { listed, schema } = target;
  const page = useModelPage(target.model);
  const operation = target.operations.find((o) => o.endpoint === target.endpoint) ?? listed.submit;
  return (
    <div className={css.head}>
      <div>
        <Link to="/playground" search={(now) => ({ type: now.type, tag: now.tag, input: now.input, file: now.file })} className={css.back}>
          ← {w.allModels}
        </Link>
        <h1>{target.model}</h1>
        <p className="lead">{String(schema.description ?? '')}</p>
        <p className="row">
          {target.type && <Badge>{w.types[target.type]}</Badge>}
          {listed.tags.map((tag) => (
            <Badge key={tag}>{tag}</Badge>
          ))}
        </p>
        {listed.ends && (
          <p className="note warn">
            <span>{w.ends(listed.ends)} </span>
            {listed.replacement && (
              <Link to="/playground" search={{ model: listed.replacement }}>
                {w.instead(listed.replacement)}
              </Link>
            )}
          </p>
        )}
        <p className="row">
          {page && (
            <a href={page} target="_blank" rel="noreferrer">
              {w.modelPage}
            </a>
          )}
          {operation && (
            <a href={operation.reference} target="_blank" rel="noreferrer">
              {words.shell.reference}
            </a>
          )}
        </p>
      </div>
      <Prices target={target} />
    </div>
  );
}

/** The prices of the operation: their range, and on demand each of them. */
function Prices({ target }: { target: Target }) {
  const { pricing } = target.listed;
  const rows = usePriceRows(target);
  const span = pricing?.operations.find((operation) => operation.endpoint === target.endpoint);
  if (!pricing || !span) return null;
  const range = <PriceRange span={span} currency={pricing.currency} />;
  if (!rows || rows.length === 1) return <p className={css.prices}>{range}</p>;
  return (
    <details className={css.prices}>
      <summary>{range}</summary>
      <table>
        <tbody>
          {rows.map((row) => (
            <tr key={row.item}>
              <th scope="row">{row.item}</th>
              <td className="number">
                <Amount value={row.unit_price} currency={pricing.currency} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function PriceRange({ span, currency }: { span: PriceSpan; currency: string }) {
  const { amount, isLeast, unit } = priceOf(span);
  return (
    <>
      {isLeast && <span>{w.from} </span>}
      <Amount value={amount} currency={currency} /> {unit}
    </>
  );
}

/** The lowest price of a model over all of its operations. */
export function ModelPrice({ model: { pricing } }: { model: ListedModel }) {
  return <p className={css.cardprice}>{pricing ? <PriceRange span={pricing} currency={pricing.currency} /> : words.ui.none}</p>;
}
