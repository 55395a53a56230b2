import { expect, test } from 'vitest';
import type { AuditEntry } from '../../api/admin';
import { formatTime } from '../../ui/format';
import { changesOf, reasonOf } from './changes';

const entry = (before: AuditEntry['before'], after: AuditEntry['after']): AuditEntry => ({ id: 'aud_1', at: 1, by: 'admin', by_name: null, action: 'change_key', object: 'key_1', object_name: 'ci', account: null, account_name: null, before, after, address: null, request_id: 'req_1' });

test('a change is shown field by field, without JSON', () => {
  const changed = entry(
    { caps: {}, scopes: ['read'], expires_at: null, same: 1, strict: true },
    { caps: { day: '1.00' }, scopes: ['read', 'manage'], expires_at: 1772366400, same: 1, strict: false, reason: 'asked for' },
  );
  expect(changesOf(changed)).toEqual([
    { field: 'Scopes', was: 'read', is: 'read, manage' },
    { field: 'Expires at', was: '–', is: formatTime(1772366400) },
    { field: 'Strict', was: 'Yes', is: 'No' },
    { field: 'Caps: day', was: undefined, is: '1.00' },
  ]);
  expect(reasonOf(changed)).toBe('asked for');
});

test('a created or deleted object has one side', () => {
  expect(changesOf(entry(null, { amount: '1.00', rate: null, models: [] }))).toEqual([{ field: 'Amount', was: undefined, is: '1.00' }]);
  expect(changesOf(entry({ name: 'ci' }, null))).toEqual([{ field: 'Name', was: 'ci', is: undefined }]);
  expect(reasonOf(entry({ name: 'ci' }, null))).toBe('');
});
