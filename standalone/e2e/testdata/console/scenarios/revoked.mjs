// A key that is revoked, rotated or narrowed under an open page.
import {ask, must} from '../browser.mjs'

export default async ({come, base}) => {
	const {id, key} = await ask('key', {name: 'to be revoked', unlimited: true})
	// A list renews itself while it has a task that is open.
	const open = await fetch(base + '/v1/videos/generations', {
		method: 'POST', headers: {Authorization: `Bearer ${key}`},
		body: JSON.stringify({model: 'alpha-v3', prompt: 'a heron [[sandbox: duration=40s]]'}),
	})
	must(open.ok, `the video: ${open.status}`)
	const v = await come()
	v.expected.push(/401/)
	await v.signIn(key)
	await v.press('link', 'Tasks')
	await ask('revoke', id)
	// So the list finds out.
	await v.sees('Your session has ended')
	must(new URL(v.page.url()).pathname === '/console/sign-in', `the page is ${v.page.url()}`)
	await v.leave()

	// One that may do less than before.
	const {id: wide, key: narrowed} = await ask('key', {name: 'to be narrowed', unlimited: true})
	const n = await come()
	n.expected.push(/403/)
	await n.signIn(narrowed)
	await n.press('link', 'Tasks')
	await ask('narrow', wide)
	await n.sees('Your session has ended')
	await n.leave()

	const reads = await come()
	const {key: narrow} = await ask('key', {name: 'reads only', unlimited: true, scopes: ['read']})
	await reads.signIn(narrow)
	await reads.sees('Playground')
	await reads.seesNot('Keys')
	await reads.leave()
}
