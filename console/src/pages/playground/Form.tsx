// The form for a request, built from its schema.
import type { ReactNode } from 'react';
import { Button } from '../../ui';
import { words } from '../../words';
import { FormStateContext, idAt, useFaultsAt, type FormState } from './field';
import { Images, Links } from './media';
import { isGroup, kindOf, mainFields, type Schema, type Values } from './schema';
import { itemsOf, openFields, resolve, type Path } from './walk';
import { inputs } from './widgets';
import css from './playground.module.css';

const w = words.playground.form;

type Change = (path: Path, value: unknown) => void;

interface NodeProps {
  /** The schema with the definitions for references. */
  root: Schema;
  schema: Schema;
  path: Path;
  value: unknown;
  onChange: Change;
}

/** The fields of an object, by name. "index" of an item is left out, because bodyOf numbers items. */
function fieldsOf({ root, schema, path, value, onChange }: NodeProps): [string, ReactNode][] {
  const values = (value ?? {}) as Values;
  const required = resolve(schema, root, values).required ?? [];
  return [...openFields(schema, root, values)]
    .filter(([name]) => name !== 'index' || path.length === 0)
    .map(([name, field]) => [name, <Field key={name} root={root} schema={field} path={[...path, name]} value={values[name]} required={required.includes(name)} onChange={onChange} />]);
}

function Field(props: NodeProps & { required: boolean }) {
  const { root, schema, path, required } = props;
  const id = idAt(path);
  const kind = kindOf(String(path.at(-1)), schema, itemsOf(schema, root));
  const faults = useFaultsAt(id, kind === 'images' || kind === 'links');
  if (kind === 'object') return <div className={css.fields}>{fieldsOf(props).map(([, field]) => field)}</div>;
  const below = (
    <>
      <p className="hint" id={`${id}-hint`}>
        {schema.description}
      </p>
      {faults.length > 0 && (
        <p className="fault foreign" id={`${id}-fault`}>
          {faults[0]?.message}
        </p>
      )}
    </>
  );
  if (kind === 'check')
    return (
      <div className={`check ${css.check}`}>
        <Control {...props} />
        <label htmlFor={id}>{schema.title}</label>
        {below}
      </div>
    );
  const label = (
    <>
      {schema.title}
      {!required && schema.default === undefined && <span className={css.optional} aria-hidden="true"> {w.optional}</span>}
    </>
  );
  return (
    <div className="field" data-kind={kind}>
      {isGroup(kind) ? (
        <span className={css.label} id={`${id}-label`}>
          {label}
        </span>
      ) : (
        <label htmlFor={id}>{label}</label>
      )}
      <Control {...props} />
      {below}
    </div>
  );
}

function Control(props: NodeProps & { required: boolean }) {
  const { root, schema, path, value, required } = props;
  const name = String(path.at(-1));
  const kind = kindOf(name, schema, itemsOf(schema, root));
  const common = { id: idAt(path), schema, onChange: (next: unknown) => props.onChange(path, next) };
  if (kind === 'items' || kind === 'object') return <Items {...props} />;
  if (kind === 'images') return <Images {...common} value={(value ?? []) as string[]} />;
  if (kind === 'links') return <Links {...common} value={(value ?? []) as string[]} />;
  const Input = inputs[kind];
  return <Input {...common} name={name} value={value as never} required={required} />;
}

/** The field for a list of objects. */
function Items({ root, schema, path, value, onChange }: NodeProps) {
  const items = (value ?? []) as unknown[];
  return (
    <div className="stack" role="group" aria-labelledby={`${idAt(path)}-label`}>
      {items.map((item, i) => (
        <div key={i} className={css.item} role="group" aria-label={w.item(i + 1)}>
          <div className={css.itemhead}>
            <span>{i + 1}</span>
            <Button variant="quiet" onClick={() => onChange(path, items.filter((_, j) => j !== i))} aria-label={w.removeItem(i + 1)}>
              {w.remove}
            </Button>
          </div>
          <Field root={root} schema={resolve(schema.items as Schema, root, item)} path={[...path, i]} value={item} required={false} onChange={onChange} />
        </div>
      ))}
      {items.length < (schema.maxItems ?? Infinity) && (
        <Button onClick={() => onChange(path, [...items, {}])} aria-label={w.addTo(String(schema.title))}>
          {w.add}
        </Button>
      )}
    </div>
  );
}

function More({ fields }: { fields: ReactNode[] }) {
  if (fields.length === 0) return null;
  return (
    <details className={css.more}>
      <summary>{w.more}</summary>
      <div className={css.fields}>{fields}</div>
    </details>
  );
}

export function Form({ schema, values, onChange, onSubmit, state, children }: { schema: Schema; values: Values; onChange: Change; onSubmit: () => void; state: FormState; children: ReactNode }) {
  const fields = fieldsOf({ root: schema, schema, path: [], value: values, onChange });
  const main = mainFields(schema);
  return (
    <FormStateContext value={state}>
      <form className={`stack ${css.form}`} noValidate onSubmit={(e) => (e.preventDefault(), onSubmit())}>
        <div className={css.fields}>{fields.filter(([name]) => main.has(name)).map(([, field]) => field)}</div>
        <More fields={fields.filter(([name]) => !main.has(name)).map(([, field]) => field)} />
        {children}
      </form>
    </FormStateContext>
  );
}
