// Chooses the period: the last days, or two dates.
import { Field, Select } from '../../ui';
import { words } from '../../words';
import { dateOrNone, type Chosen, type Range } from './range';

const w = words.usage;

export function Period({ range, fault, onChange }: { range: Range; fault: (field: 'from' | 'to') => string | null; onChange: (chosen: Chosen) => void }) {
  return (
    <>
      <Select
        label={w.range}
        value={range.preset}
        options={[
          { value: '7d', label: w.last(7) },
          { value: '30d', label: w.last(30) },
          { value: '90d', label: w.last(90) },
          { value: 'own', label: w.own },
        ]}
        onChange={(e) => onChange(e.target.value === 'own' ? { from: range.first, to: range.last } : { from: e.target.value, to: undefined })}
      />
      {range.preset === 'own' && (
        <>
          <Field label={w.first} type="date" max={range.last} value={dateOrNone(range.first)} error={fault('from')} onChange={(e) => e.target.value && onChange({ from: e.target.value, to: range.last })} />
          <Field label={w.lastDay} type="date" min={range.first} value={dateOrNone(range.last)} error={fault('to')} onChange={(e) => e.target.value && onChange({ from: range.first, to: e.target.value })} />
        </>
      )}
    </>
  );
}
