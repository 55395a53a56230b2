import react from '@vitejs/plugin-react';
import path from 'node:path';
import { defineConfig } from 'vite';

// MEDIAGATE_URL is where `npm run dev` finds the API.
const api = process.env.MEDIAGATE_URL ?? 'http://127.0.0.1:8080';

export default defineConfig({
  base: '/console/',
  plugins: [react()],
  // A class is named after its file, so that tests and people find it: .wide of keys.module.css is keys-wide.
  css: { modules: { generateScopedName: (name, file) => `${path.basename(file, '.module.css')}-${name}` } },
  build: {
    target: 'es2023',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0, // the Content-Security-Policy takes no data: address for scripts and styles
  },
  server: {
    proxy: { '/v1': api, '/admin': api, '/openapi.json': api, '/console/session': api, '/files': api },
  },
});
