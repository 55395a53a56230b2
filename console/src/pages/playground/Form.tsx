// The form of a request, made from its schema by react-jsonschema-form, with our parts.
// The package's index brings a validator for its own tests along, which is not installed.
import RjsfForm from '@rjsf/core/lib/components/Form.js';
import ArrayField from '@rjsf/core/lib/components/fields/ArrayField.js';
import type { ArrayFieldItemTemplateProps, ArrayFieldTemplateProps, FieldProps, FieldTemplateProps, ObjectFieldTemplateProps, WidgetProps } from '@rjsf/utils';
import { useMemo, type ReactNode } from 'react';
import { Button } from '../../ui';
import { words } from '../../words';
import { keepHidden } from './body';
import { FormStateContext, useFaultsAt, type FormState } from './field';
import { Images, Links } from './media';
import { formSchema, isGroup, isOpen, kindOf, mainFields, type Schema, type Values } from './schema';
import { validator } from './validate';
import { inputs } from './widgets';

const w = words.playground.form;

type Registry = FieldTemplateProps['registry'];
// An address stands for the item: some lists take objects as well, whose form nobody needs.
const itemsOf = (schema: Schema, registry: Registry) => (schema.items ? registry.schemaUtils.retrieveSchema(schema.items as Schema, 'https://' as never) : undefined);
const nameOf = (path: readonly (string | number)[]) => String(path.at(-1) ?? '');

function FieldTemplate({ id, label, rawDescription, required, schema, fieldPathId, registry, children }: FieldTemplateProps) {
  const kind = kindOf(nameOf(fieldPathId.path), schema, itemsOf(schema, registry));
  const faults = useFaultsAt(id, kind === 'images' || kind === 'links');
  const below = (
    <>
      <p className="hint" id={`${id}-hint`}>
        {rawDescription}
      </p>
      {faults.length > 0 && (
        <p className="fault foreign" id={`${id}-fault`}>
          {faults[0]?.message}
        </p>
      )}
    </>
  );
  if (schema.type === 'object') return children;
  if (kind === 'check')
    return (
      <div className="check pg-check">
        {children}
        <label htmlFor={id}>{label}</label>
        {below}
      </div>
    );
  const text = (
    <>
      {label}
      {!required && schema.default === undefined && <span className="pg-optional" aria-hidden="true"> {w.optional}</span>}
    </>
  );
  return (
    <div className="field" data-kind={kind}>
      {kind === 'other' || isGroup(kind) ? (
        <span className="pg-label" id={`${id}-label`}>
          {text}
        </span>
      ) : (
        <label htmlFor={id}>{text}</label>
      )}
      {children}
      {below}
    </div>
  );
}

function ObjectFieldTemplate({ properties, schema, formData, fieldPathId, registry }: ObjectFieldTemplateProps) {
  const values = (formData ?? {}) as Values;
  const open = properties.filter((p) => {
    const property = registry.schemaUtils.retrieveSchema((schema.properties?.[p.name] ?? {}) as Schema, values[p.name] as never);
    const byPlace = p.name === 'index' && fieldPathId.path.length > 0; // bodyOf numbers items
    return !byPlace && isOpen(property, values[p.name]);
  });
  if (fieldPathId.path.length > 0) return <div className="pg-fields">{open.map((p) => p.content)}</div>;
  const main = mainFields(schema);
  const more = open.filter((p) => !main.has(p.name));
  return (
    <>
      <div className="pg-fields">{open.filter((p) => main.has(p.name)).map((p) => p.content)}</div>
      {more.length > 0 && (
        <details className="pg-more">
          <summary>{w.more}</summary>
          <div className="pg-fields">{more.map((p) => p.content)}</div>
        </details>
      )}
    </>
  );
}

function ArrayFieldTemplate({ items, canAdd, onAddClick, title, fieldPathId }: ArrayFieldTemplateProps) {
  return (
    <div className="stack" role="group" aria-labelledby={`${fieldPathId.$id}-label`}>
      {items}
      {canAdd && (
        <Button onClick={onAddClick} aria-label={w.addTo(title)}>
          {w.add}
        </Button>
      )}
    </div>
  );
}

function ArrayFieldItemTemplate({ children, index, buttonsProps }: ArrayFieldItemTemplateProps) {
  return (
    <div className="pg-item" role="group" aria-label={w.item(index + 1)}>
      <div className="pg-itemhead">
        <span>{index + 1}</span>
        <Button variant="quiet" onClick={buttonsProps.onRemoveItem} aria-label={w.removeItem(index + 1)}>
          {w.remove}
        </Button>
      </div>
      {children}
    </div>
  );
}

function Arrays(props: FieldProps) {
  const kind = kindOf(props.name, props.schema, itemsOf(props.schema, props.registry));
  const list = { id: props.fieldPathId.$id, schema: props.schema, value: (props.formData ?? []) as string[], onChange: (value: string[]) => props.onChange(value, props.fieldPathId.path) };
  if (kind === 'images') return <Images {...list} />;
  if (kind === 'links') return <Links {...list} />;
  return <ArrayField {...(props as FieldProps<unknown[]>)} />;
}

function Input(props: WidgetProps) {
  const Kind = inputs[kindOf(props.name, props.schema)];
  return <Kind id={props.id} name={props.name} schema={props.schema} value={props.value as never} required={props.required ?? false} onChange={props.onChange} />;
}

const templates = { FieldTemplate, ObjectFieldTemplate, ArrayFieldTemplate, ArrayFieldItemTemplate };
const fields = { ArrayField: Arrays };
const widgets = { TextWidget: Input, TextareaWidget: Input, SelectWidget: Input, CheckboxWidget: Input, RadioWidget: Input, UpDownWidget: Input, RangeWidget: Input, URLWidget: Input };
// Only what somebody has chosen is sent: what is left out has the default of the server.
const defaults = { emptyObjectFields: 'skipDefaults', arrayMinItems: { populate: 'never' }, constAsDefaults: 'never' } as const;

export function Form({ schema, values, onChange, onSubmit, state, children }: { schema: Schema; values: Values; onChange: (values: Values) => void; onSubmit: () => void; state: FormState; children: ReactNode }) {
  const shown = useMemo(() => formSchema(schema), [schema]);
  return (
    <FormStateContext value={state}>
      <RjsfForm
        className="stack pg-form"
        schema={shown}
        formData={values}
        validator={validator}
        noValidate
        noHtml5Validate
        templates={templates}
        fields={fields}
        widgets={widgets}
        experimental_defaultFormStateBehavior={defaults}
        // Changes that no field made are those of the library's own defaults, which are not wanted.
        onChange={(e, field) => field && onChange(keepHidden(schema, values, (e.formData ?? {}) as Values, field))}
        onSubmit={onSubmit}
      >
        {children}
      </RjsfForm>
    </FormStateContext>
  );
}
