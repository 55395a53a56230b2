// The way in: the root of the service, the first steps of an account that has made nothing, and
// the documentation from the menu and from a model.
import {must} from '../browser.mjs'

export default async ({come, base, key, other}) => {
	const v = await come()
	await v.page.goto(base + '/', {waitUntil: 'load'})
	await v.holds(() => location.pathname === '/console/sign-in')
	await v.signIn(other)
	await v.sees('Getting started')
	await v.at('link', 'Create an API key')
	const code = await (await v.page.waitForSelector('.playground-firststeps pre')).evaluate(e => e.innerText)
	must(code.includes('Idempotency-Key') && code.includes(base), `the first call is ${code}`)
	for (const [name, path] of [['Docs', '/docs'], ['API reference', '/docs/reference'], ['Model pages', '/docs/models']]) {
		const link = await v.at('link', name, 'nav')
		must(new URL(await link.evaluate(a => a.href)).pathname === path, `${name} leads elsewhere`)
		must((await fetch(base + path)).ok, `${path} is not there`)
	}
	// A card shows the lowest price of all operations: an upscale, and a voice.
	for (const [model, price] of [['art', 'from $0.01 each'], ['music-a', 'from $0.02 each'], ['music-b', '$0.10 per song']]) {
		await v.holds((model, price) => document.querySelector(`a[href$="model=${model}"] .playground-cardprice`)?.innerText === price, model, price)
	}
	await v.inspect('first-steps')
	await v.click('a[href*="model=alpha-v3"]')
	const about = await v.at('link', 'About this model')
	const page = await fetch(await about.evaluate(a => a.href))
	must(page.ok && (await page.text()).includes('alpha-v3'), 'the model has no page')
	const reference = await (await v.at('link', 'API reference', '.playground-head')).evaluate(a => a.href)
	must((await (await fetch(reference)).text()).includes(`id="${new URL(reference).hash.slice(1)}"`), `${reference} is not there`)
	await v.press('button', 'Sign out')

	await fetch(`${base}/v1/images/generations`, {method: 'POST', headers: {Authorization: `Bearer ${key}`}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a heron'})})
	await v.signIn(key)
	await v.page.waitForSelector('a[href*="model=alpha-v3"]')
	await v.settles()
	await v.seesNot('Getting started')
	await v.leave()
}
