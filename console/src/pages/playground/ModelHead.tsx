// Which model is tried, what it can do, and what it costs.
import { Link } from '@tanstack/react-router';
import { Amount, Badge } from '../../ui';
import { words } from '../../words';
import { useModelPage, usePrices, type ListedModel, type PriceList, type Target } from './catalog';
import css from './playground.module.css';

const w = words.playground;

export function ModelHead({ target }: { target: Target }) {
  const { listed, schema } = target;
  const prices = usePrices(listed);
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
      {prices && <Prices prices={prices} />}
    </div>
  );
}

function Prices({ prices }: { prices: PriceList }) {
  if (prices.rows.length === 1) return <p className={css.prices}>{<PriceRange prices={prices} />}</p>;
  return (
    <details className={css.prices}>
      <summary>
        <PriceRange prices={prices} />
      </summary>
      <table>
        <tbody>
          {prices.rows.map((row) => (
            <tr key={row.item}>
              <th scope="row">{row.item}</th>
              <td className="number">
                <Amount value={row.unit_price} currency={prices.currency} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

export function PriceRange({ prices }: { prices: PriceList }) {
  const each = prices.rows.map((row) => row.unit_price);
  const [least, most] = [Math.min(...each), Math.max(...each)];
  // Single characters cost too little to be read.
  const many = prices.unit === 'character' ? 1000 : 1;
  return (
    <>
      {least < most && <span>{w.from} </span>}
      <Amount value={Number((least * many).toPrecision(6))} currency={prices.currency} /> {w.units[prices.unit as keyof typeof w.units] ?? prices.unit}
    </>
  );
}

export function ModelPrice({ model }: { model: ListedModel }) {
  const prices = usePrices(model);
  return <p className={css.cardprice}>{prices ? <PriceRange prices={prices} /> : words.ui.none}</p>;
}
