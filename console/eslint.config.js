// The rules of React's hooks, which the compiler of TypeScript does not know.
import reactHooks from 'eslint-plugin-react-hooks';
import { parser } from 'typescript-eslint';

export default [
  {
    files: ['src/**/*.{ts,tsx}'],
    ignores: ['src/api/openapi.d.ts', 'src/api/openapi.ts'],
    languageOptions: { parser },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { 'react-hooks': reactHooks },
    rules: { 'react-hooks/rules-of-hooks': 'error', 'react-hooks/exhaustive-deps': 'error' },
  },
];
