// What somebody would try who wants to act as another: scripts in texts, requests from
// another site, a session given to the victim, a frame around the page.
import {ask, must} from '../browser.mjs'

const script = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`

export default async ({come, base, key, admin, account}) => {
	const send = (path, init = {}) => fetch(base + path, init)
	const asOperator = {Authorization: `Bearer ${admin}`}

	// A session cannot be used without its token, and not begun from another site.
	let answer = await send('/console/session', {method: 'POST', body: JSON.stringify({key})})
	must(answer.status === 201, `signing in: ${answer.status}`)
	const cookie = answer.headers.getSetCookie()[0].split(';')[0]
	must(/HttpOnly/i.test(answer.headers.getSetCookie()[0]) && /SameSite=Strict/i.test(answer.headers.getSetCookie()[0]), answer.headers.getSetCookie()[0])
	const {csrf} = await answer.json()
	const submit = headers => send('/v1/images/generations', {method: 'POST', headers, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a boat'})})
	answer = await submit({Cookie: cookie})
	must(answer.status === 403, `without a token: ${answer.status}`)
	answer = await submit({Cookie: cookie, 'X-CSRF-Token': csrf.slice(1) + 'x'})
	must(answer.status === 403, `with another token: ${answer.status}`)
	answer = await submit({Cookie: cookie, 'X-CSRF-Token': csrf})
	must(answer.status === 200, `with its token: ${answer.status}`)
	answer = await send('/console/session', {method: 'POST', headers: {'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example.com'}, body: JSON.stringify({key})})
	must(answer.status === 403, `from another site: ${answer.status}`)

	// Signing in makes a new session, whatever cookie was there, and ends the old one.
	answer = await send('/console/session', {method: 'POST', headers: {Cookie: cookie}, body: JSON.stringify({key})})
	must(answer.status === 201 && !answer.headers.getSetCookie()[0].startsWith(cookie), 'the session before goes on')
	answer = await send('/console/session', {headers: {Cookie: cookie}})
	must(answer.status === 401, `the session before: ${answer.status}`)
	answer = await send('/console/session', {headers: {Cookie: 'mediagate_session=' + 'A'.repeat(43)}})
	must(answer.status === 401, `a session of the attacker's making: ${answer.status}`)

	// No page may be framed, and nothing may be loaded from elsewhere.
	answer = await send('/console')
	const policy = answer.headers.get('Content-Security-Policy')
	must(answer.headers.get('X-Frame-Options') === 'DENY' && policy.includes("frame-ancestors 'none'"), 'the page can be framed')
	must(!policy.includes('unsafe') && policy.includes("default-src 'none'"), policy)

	// Texts of clients and vendors are shown as texts.
	const {key: named} = await ask('key', {name: script, unlimited: true})
	await send(`/admin/v1/accounts/${account}`, {method: 'PATCH', headers: asOperator, body: JSON.stringify({name: script.slice(0, 200)})})
	const bad = await send('/v1/videos/generations', {
		method: 'POST', headers: {Authorization: `Bearer ${named}`},
		body: JSON.stringify({model: 'alpha-v3', prompt: `${script} [[sandbox: fail=internal, duration=1s]]`, metadata: {reference: script}, webhook: 'https://example.com/' + encodeURIComponent(script)}),
	})
	must(bad.status === 200, `the submit: ${bad.status} ${await bad.clone().text()}`)
	const id = (await bad.json()).data[0].task_id
	const v = await come()
	await v.signIn(named)
	for (const page of ['/playground', '/tasks', `/tasks?reference=${encodeURIComponent(script)}`, `/tasks/${id}`, '/keys', '/account', '/usage', `/playground?model=${encodeURIComponent(script)}`]) {
		await v.go(page)
		await v.settles()
		must(!(await v.page.evaluate(() => window.hit)), `a script ran on ${page}`)
	}
	await v.leave()
	const operator = await come()
	await operator.signIn(admin)
	for (const page of ['/operator?stuck=all', `/operator/tasks/${id}`, '/operator/accounts', `/operator/accounts/${account}`, '/operator/audit', '/operator/books', '/operator/channels']) {
		await operator.go(page)
		await operator.settles()
		must(!(await operator.page.evaluate(() => window.hit)), `a script ran on ${page}`)
	}
	await operator.leave()
}
