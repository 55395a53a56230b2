// What the console asks for: little at first, and nothing while nothing is under way.
import {must} from '../browser.mjs'

export default async ({come, base, other, admin, account}) => {
	const submitted = await fetch(`${base}/v1/images/generations`, {method: 'POST', headers: {Authorization: `Bearer ${other}`}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a heron'})})
	const id = (await submitted.json()).data[0].task_id
	const v = await come()
	await v.signIn(other)
	await v.go(`/tasks/${id}`)
	await v.sees('Completed')

	// All that is loaded until the models are shown, as it comes over the network.
	await v.page.setCacheEnabled(false)
	await v.go('/playground')
	await v.page.waitForSelector('a[href*="model=alpha-v3"]')
	await v.settles()
	const size = await v.page.evaluate(() => performance.getEntriesByType('resource').filter(e => new URL(e.name).pathname.startsWith('/console/assets/')).reduce((sum, e) => sum + e.encodedBodySize, 0))
	must(size > 0 && size <= 150_000, `the first load has ${size} bytes`)

	for (const to of ['/playground', '/playground?model=alpha-v3', '/tasks', '/tasks?view=gallery', `/tasks/${id}`, '/keys', '/webhooks', '/account', '/usage']) await v.rests(to)
	await v.leave()

	// The other pages of operators follow what is stuck and the channels.
	const operator = await come()
	await operator.signIn(admin)
	for (const to of ['/operator/accounts', `/operator/accounts/${account}`, '/operator/books', '/operator/audit']) await operator.rests(to)
	await operator.leave()
}
