// Endpoints of the account: one is made, told of a test, refuses, fails at once in sight, is sent the
// event again, is disabled and deleted.
import {once} from 'node:events'
import {createServer} from 'node:http'
import {must} from '../browser.mjs'

export default async ({come, key}) => {
	const called = []
	let status = 503
	const hooks = createServer((request, response) => {
		called.push(`${request.url} ${request.headers['webhook-id']}`)
		request.resume()
		response.writeHead(status).end('come again')
	}).listen(0, '127.0.0.1')
	await once(hooks, 'listening')
	const v = await come()
	v.expected.push(/400/) // an address that is none
	await v.signIn(key)
	await v.press('link', 'Webhooks')
	await v.sees('No endpoints')
	await v.press('button', 'Add endpoint')
	await v.fill('textbox', 'URL', 'http://10.0.0.1/')
	// Other scenarios have tasks of the same account: this endpoint is not told of those.
	for (const type of ['key.quota_low', 'task.completed', 'task.failed', 'task.cancelled', 'balance.low']) {
		await v.page.evaluate(type => {
			const box = [...document.querySelectorAll('dialog[open] input[type=checkbox]')].find(b => b.labels[0].innerText === type)
			if (box.checked !== (type === 'key.quota_low')) box.click()
		}, type)
	}
	const submit = () => v.page.evaluate(() => document.querySelector('dialog[open] button[type=submit]').click())
	await submit()
	await v.sees('url is not an address for callbacks')
	await v.fill('textbox', 'URL', `http://127.0.0.1:${hooks.address().port}/events`)
	await submit()
	await v.holds(() => /whsec_[0-9A-Za-z+/]{43}=/.test(document.querySelector('dialog[open]')?.innerText ?? ''))
	await v.press('button', 'I have saved it')
	await v.press('link', `http://127.0.0.1:${hooks.address().port}/events`)
	await v.press('button', 'Send test event')
	await v.sees('Failing')
	await v.press('button', 'Disable')
	await v.sees('Nothing is sent while the endpoint is disabled.')
	await v.press('button', 'Enable')
	await v.holds(() => [...document.querySelectorAll('.webhooks-delivery .badge')].some(b => b.innerText === 'Failed'))
	await v.page.evaluate(() => document.querySelector('.webhooks-delivery summary').click())
	await v.sees('come again')
	await v.sees('Webhook-Signature')
	await v.inspect('endpoint')
	status = 204
	await v.page.evaluate(() => document.querySelector('.webhooks-delivery input').click())
	await v.press('button', 'Send 1 again')
	await v.holds(() => [...document.querySelectorAll('.webhooks-delivery .badge')].some(b => b.innerText === 'Delivered'))
	must(called.length > 1 && new Set(called).size === 1, `it was called with ${called}`)
	await v.choose('State', 'failed')
	await v.sees('No deliveries')
	await v.press('button', 'Delete')
	await v.press('button', 'Delete now')
	await v.sees('No endpoints')
	await v.leave()
	hooks.close()
}
