BEGIN TRANSACTION;
CREATE TABLE answer (
	operation TEXT NOT NULL, 
	media TEXT NOT NULL, 
	content BLOB, 
	path TEXT, 
	PRIMARY KEY (operation), 
	CONSTRAINT somewhere CHECK ((content IS NULL) <> (path IS NULL))
)
 STRICT

;
INSERT INTO "answer" VALUES('q-1','application/json',X'7B226E223A34317D',NULL);
INSERT INTO "answer" VALUES('q-2','text/plain',X'6E6F697379',NULL);
CREATE TABLE block (
	budget TEXT NOT NULL, 
	block TEXT NOT NULL, 
	cost INTEGER NOT NULL CHECK (cost >= 0), 
	delta INTEGER NOT NULL CHECK (delta >= 0), 
	PRIMARY KEY (budget, block), 
	FOREIGN KEY(budget) REFERENCES budget (name)
)
 STRICT

;
INSERT INTO "block" VALUES('clinic','north',144115188075855872,0);
INSERT INTO "block" VALUES('clinic/analyst/amina','north',288230376151711744,0);
CREATE TABLE book (
	id TEXT NOT NULL, 
	schema_version INTEGER NOT NULL, 
	PRIMARY KEY (id)
)
 STRICT

;
INSERT INTO "book" VALUES('03483eda189845eaaeb34517880210c5',1);
CREATE TABLE budget (
	name TEXT NOT NULL, 
	version INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	cost INTEGER NOT NULL CHECK (cost >= 0), 
	delta INTEGER NOT NULL CHECK (delta >= 0), 
	peak_cost INTEGER NOT NULL CHECK (peak_cost >= 0), 
	peak_delta INTEGER NOT NULL CHECK (peak_delta >= 0), 
	PRIMARY KEY (name)
)
 STRICT

;
INSERT INTO "budget" VALUES('clinic',1,'{"adjacency":"add_remove","disjoint_by":"ward","epsilon":2.0,"filter":{"delta":0.0,"epsilon":2.0,"type":"pure"},"unit":"person"}',72057594037927936,0,144115188075855872,0);
INSERT INTO "budget" VALUES('clinic/analyst/amina',1,'{"adjacency":"add_remove","disjoint_by":"ward","epsilon":1.0,"filter":{"delta":0.0,"epsilon":1.0,"type":"pure"},"unit":"person"}',144115188075855872,0,288230376151711744,0);
INSERT INTO "budget" VALUES('tax',2,'{"adjacency":"add_remove","delta":1e-06,"epsilon":2.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":1.5351343280228522,"type":"rdp"},"unit":"person"}',24031000872920915,0,0,0);
INSERT INTO "budget" VALUES('school',1,'{"adjacency":"add_remove","filter":{"delta":0.0,"rho":0.5,"type":"zcdp"},"rho":0.5,"unit":"person"}',2882303761517118,0,0,0);
CREATE TABLE entry (
	seq INTEGER NOT NULL, 
	at TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	operation TEXT, 
	analyst TEXT, 
	body TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	CONSTRAINT once UNIQUE (operation, kind)
)
 STRICT

;
INSERT INTO "entry" VALUES(1,'2026-11-16T10:52:27.348553+00:00','open',NULL,NULL,'{"sitr":"0.1.0"}','899d5a19cba85d8bee2f7438fc2760c265d39ecacf4eebff64512d10ef4e2972');
INSERT INTO "entry" VALUES(2,'2026-11-16T10:52:27.352661+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"disjoint_by\":\"ward\",\"epsilon\":2.0,\"filter\":{\"delta\":0.0,\"epsilon\":2.0,\"type\":\"pure\"},\"unit\":\"person\"}","name":"clinic"}','6005fae38df53f8e57d6ff2c19e3864e1c4d60c79d323dbcde3c5195745dab87');
INSERT INTO "entry" VALUES(3,'2026-11-16T10:52:27.354853+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"disjoint_by\":\"ward\",\"epsilon\":1.0,\"filter\":{\"delta\":0.0,\"epsilon\":1.0,\"type\":\"pure\"},\"unit\":\"person\"}","name":"clinic/analyst/amina"}','09cb12abfee4c2a07f0cfa0a44c876bf67c0cbc38af11ca2df9a8e043e913aa6');
INSERT INTO "entry" VALUES(4,'2026-11-16T10:52:27.356224+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-06,\"epsilon\":1.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":9.99999999998181e-08,\"epsilon\":0.5351343280264903,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"tax"}','9823561cba46860e0e7b9fb1cf8a09c56faa23609110e9faf667fdb39c6c6ab0');
INSERT INTO "entry" VALUES(5,'2026-11-16T10:52:27.357176+00:00','budget',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"filter\":{\"delta\":0.0,\"rho\":0.5,\"type\":\"zcdp\"},\"rho\":0.5,\"unit\":\"person\"}","name":"school"}','e66e2551a77dee8da7df3368722b7a3687d1776c1abf03248b1f03f9a3e00018');
INSERT INTO "entry" VALUES(6,'2026-11-16T10:52:27.358173+00:00','reserve','q-1','amina','{"blocks":["north"],"budgets":{"clinic":{"cost":144115188075855872,"delta":0,"version":1},"clinic/analyst/amina":{"cost":288230376151711744,"delta":0,"version":1}},"datasets":["clinic"],"event":{"noise_multiplier":4.0,"schema_version":1,"type":"laplace"},"purpose":null,"request":"2cad9b9e5050f7fed7422ec29d34645375118dfd7a8dcdce6d6526b1b41d0fbe"}','c184ae2f45b6d62ecad635124c8e7e38138d81ac53aa0514f8b9deee29c2b59e');
INSERT INTO "entry" VALUES(7,'2026-11-16T10:52:27.358620+00:00','start','q-1','amina','{"holder":"bddd65c725bfd15ed3e7c21176bacb1b74a257254c83d19fdd9ec49463328a5f"}','79f64662c6121b9f8d68f686a318f517236bd02e80bde1877f0394c5bee920be');
INSERT INTO "entry" VALUES(8,'2026-11-16T10:52:27.359066+00:00','commit','q-1','amina','{"bytes":8,"holder":"a780be38c436b78f3cbc8f2dde273ee8","media":"application/json","sha256":"e33d8bf7f55a93deaf57c09fffbf57cb762322df37eac1118ba33c20c71faa30"}','0fd154d1df3515c3c1647880ae2eacf8b23286b102acb9a05f9e58272e561074');
INSERT INTO "entry" VALUES(9,'2026-11-16T10:52:27.359778+00:00','reserve','q-2','badr','{"blocks":[],"budgets":{"school":{"cost":2882303761517118,"delta":0,"version":1},"tax":{"cost":59725422145697683,"delta":0,"version":1}},"datasets":["school","tax"],"event":{"noise_multiplier":20.0,"schema_version":1,"type":"gaussian"},"purpose":"report","request":"f369a692a97f3d533d13ace8da632820f50217d63e7048cad7a23bb88c4839e7"}','41abc7912aa6feda075808e598586e24619469987d7493a35f9c2c63469abe70');
INSERT INTO "entry" VALUES(10,'2026-11-16T10:52:27.360153+00:00','start','q-2','badr','{"holder":"52ba2d7b9357b0ace560647d52736ec09e54dcb326588c6cb38420a6581e8853"}','62ec1cd17ff876f5efccf340434cd0daff4541f584d538d96bc40ac4f4cceace');
INSERT INTO "entry" VALUES(11,'2026-11-16T10:52:27.360482+00:00','commit','q-2','badr','{"bytes":5,"holder":"ca8ea3d0207608e5245b2ab670109e7a","media":"text/plain","sha256":"acd6beff7c3430bfed5d69f86c5c9e6a32ad2a27a2c2a1e8763ce08f6c3da5ec"}','f43c8019aed92c97568816caf65eec8a1c3f25d94a9d385322d83279a48228cb');
INSERT INTO "entry" VALUES(12,'2026-11-16T10:52:27.362618+00:00','raise',NULL,NULL,'{"definition":"{\"adjacency\":\"add_remove\",\"delta\":1e-06,\"epsilon\":2.0,\"filter\":{\"alpha\":22.17748460295068,\"delta\":9.99999999998181e-08,\"epsilon\":1.5351343280228522,\"type\":\"rdp\"},\"unit\":\"person\"}","name":"tax","reason":"second year"}','a06e4926433f9fa1c365f3603121fc81f0467a37722027ed20c84e6f62236c67');
INSERT INTO "entry" VALUES(13,'2026-11-16T10:52:27.363425+00:00','reserve','q-3','amina','{"blocks":[],"budgets":{"clinic":{"cost":72057594037927936,"delta":0,"version":1},"clinic/analyst/amina":{"cost":144115188075855872,"delta":0,"version":1}},"datasets":["clinic"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"purpose":null,"request":"0d26b748f6fd5ff44806438c5732a707a09f57f7374f901b87b685d62b7cedf9"}','899ea2206d99cf86d7eb6657446d6eb4557b2ea530eeacb32139745c461b5b6a');
INSERT INTO "entry" VALUES(14,'2026-11-16T10:52:27.364125+00:00','reserve','q-4','badr','{"blocks":[],"budgets":{"clinic":{"cost":144115188075855872,"delta":0,"version":1}},"datasets":["clinic"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"purpose":null,"request":"19ae2acab3e6b69b464fab733581b713155082137b11b840e7affa6685b2ec97"}','f8b204b5648fbdb2fc681f06a51982418ae85964b02e3bfb9eaa870fdbe2a926');
INSERT INTO "entry" VALUES(15,'2026-11-16T10:52:27.367450+00:00','refund','q-4','badr','{"reason":"never ran"}','77bbef34fa9d209e8b4402fecc61c337222d92701dcd30c858d5783e1e3368d0');
INSERT INTO "entry" VALUES(16,'2026-11-16T10:52:27.368554+00:00','reserve','q-5','badr','{"blocks":[],"budgets":{"tax":{"cost":3211243889699695,"delta":0,"version":2}},"datasets":["tax"],"event":{"noise_multiplier":50.0,"schema_version":1,"type":"laplace"},"purpose":null,"request":"4cd64a718e43610b91df2e2c92d9eeb72a79b49f5b7b0d33a973d65ed2286480"}','e03e75ed5e44ab274274da46538b237273d0bb86a665049881fe5bda1b99294c');
INSERT INTO "entry" VALUES(17,'2026-11-16T10:52:27.369018+00:00','start','q-5','badr','{"holder":"c7e77a1415cc8f453979bc30d5c8fded646a21c81e4c3868995d1669cdefa228"}','314f5f117b197e54037668a2304cdc386ed05de13f43e2fb85ea80426eb6b7fd');
CREATE TRIGGER entry_no_update BEFORE update ON entry BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER entry_no_delete BEFORE delete ON entry BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER book_no_delete BEFORE delete ON book BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER answer_no_update BEFORE update ON answer BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
CREATE TRIGGER answer_no_delete BEFORE delete ON answer BEGIN
    SELECT RAISE(ABORT, 'a book is only added to');
END;
COMMIT;
