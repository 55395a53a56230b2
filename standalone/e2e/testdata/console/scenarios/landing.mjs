// Where a session begins: with a page that it may open, whoever was here before.
import {ask} from '../browser.mjs'

const at = (v, path) => v.holds(p => location.pathname === p, `/console${path}`)

export default async ({come, key, admin}) => {
	const v = await come()
	v.expected.push(/401/)
	await v.signIn(key)
	await at(v, '/playground')
	await v.press('link', 'Tasks')
	await at(v, '/tasks')
	await v.press('button', 'Sign out')
	await v.signIn(admin)
	await at(v, '/operator')
	await v.go('/tasks')
	await at(v, '/operator')
	await v.press('button', 'Sign out')

	// At the address of a customer whose session has ended.
	await v.go('/tasks')
	await v.fill('textbox', 'API key', admin)
	await v.press('button', 'Sign in')
	await at(v, '/operator')
	await v.leave()

	for (const [scopes, home] of [[['manage'], '/keys'], [['generate'], '/account']]) {
		const {key: narrow} = await ask('key', {name: scopes.join(), unlimited: true, scopes})
		const n = await come()
		await n.signIn(narrow)
		await at(n, home)
		await n.go('/playground')
		await at(n, home)
		await n.leave()
	}
}
