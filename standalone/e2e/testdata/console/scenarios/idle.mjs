// What the console asks for: little at first, and nothing while nothing is under way.
import {must} from '../browser.mjs'

export default async ({come, base, other, admin, account}) => {
	const submitted = await fetch(`${base}/v1/images/generations`, {method: 'POST', headers: {Authorization: `Bearer ${other}`}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a heron'})})
	must(submitted.ok, `the submit: ${submitted.status}`)
	const id = (await submitted.json()).data[0].task_id
	const v = await come()
	await v.signIn(other)
	await v.go(`/tasks/${id}`)
	await v.sees('Completed')

	// All files of the console that are loaded until the models are shown, as compressed by the server, without
	// their headers and without the answers of the API.
	await v.page.setCacheEnabled(false)
	const network = await v.page.createCDPSession()
	await network.send('Network.enable')
	const files = new Map()
	network.on('Network.responseReceived', ({requestId, response}) => {
		const path = new URL(response.url).pathname
		if (path.startsWith('/console/') && path !== '/console/session') files.set(requestId, {path, size: -response.encodedDataLength})
	})
	network.on('Network.loadingFinished', ({requestId, encodedDataLength}) => {
		if (files.has(requestId)) files.get(requestId).size += encodedDataLength
	})
	await v.go('/playground')
	await v.page.waitForSelector('a[href*="model=alpha-v3"]')
	await v.settles()
	const sum = [...files.values()].reduce((sum, {size}) => sum + size, 0)
	must(sum > 100_000 && sum <= 150_000, `the first load has ${sum} bytes: ${JSON.stringify([...files.values()])}`)
	await network.detach()

	for (const to of ['/playground', '/playground?model=alpha-v3', '/tasks', '/tasks?view=gallery', `/tasks/${id}`, '/keys', '/webhooks', '/account', '/usage']) await v.rests(to)
	await v.leave()

	// The other pages of operators follow what is stuck and the channels.
	const operator = await come()
	await operator.signIn(admin)
	for (const to of ['/operator/accounts', `/operator/accounts/${account}`, '/operator/books', '/operator/audit']) await operator.rests(to)
	await operator.leave()
}
