// Operators sign in by OpenID Connect, and each sees what the role may. A person without a
// role reads whom to ask.
import {ask, must} from '../browser.mjs'

const through = async v => v.click('a[href="/console/oidc/start"]')

export default async ({come}) => {
	for (const [role, switches, rules] of [['read', false, false], ['operate', true, false], ['admin', true, true]]) {
		await ask('person', {sub: `person-${role}`, groups: ['staff', `media-${role}`]})
		const v = await come()
		const offers = async name => v.page.evaluate(name => [...document.querySelectorAll('main button')].some(b => (b.ariaLabel ?? b.innerText) === name), name)
		// The page that was asked for comes after the sign-in.
		await v.go('/operator/accounts')
		await v.holds(() => location.pathname.endsWith('/sign-in'))
		if (role === 'read') await v.inspect('sign-in-oidc')
		await through(v)
		await v.holds(() => location.pathname === '/console/operator/accounts')
		await v.sees(`oidc:sub:person-${role} · operator (${role})`)
		await v.sees('demo')
		must(await offers('Create account') === rules, `${role}: whether accounts can be made`)
		await v.press('link', 'demo', 'main')
		await v.sees('Ledger')
		await v.settles()
		for (const name of ['Grant', 'Edit', 'Suspend']) must(await offers(name) === rules, `${role}: ${name}`)
		await v.go('/operator/channels')
		await v.sees('sandbox-kling')
		must(await offers('Drain sandbox-kling') === switches, `${role}: whether channels can be drained`)
		await v.press('button', 'Sign out')
		await v.holds(() => location.pathname.endsWith('/sign-in'))
		await v.leave()
	}

	await ask('person', {sub: 'person-none', groups: ['staff']})
	const v = await come()
	v.expected.push(/403/)
	await v.go('/sign-in')
	await through(v)
	await v.sees('oidc:sub:person-none, who has no role here: ask those who run this gateway')
	await v.abide('the page of a refusal')
	await v.press('link', 'Back to the sign-in page')
	await v.sees('API key')
	await v.leave()
}
